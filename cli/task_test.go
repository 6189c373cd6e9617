package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A guarded command that cannot be started ends as it would in a shell; what it ends with by itself is its own affair.
func TestExitCodeOfAGuardedCommandThatIsNotThere(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"no-such-program": 127, "/no/such/program": 127, plain: 126} {
		if got := notStarted(exec.Command(name).Start()); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := notStarted(errors.New("no leader")); got != 0 {
		t.Errorf("another error: %d", got)
	}
}

func TestLengthsOfFlags(t *testing.T) {
	for text, want := range map[string]time.Duration{"7d": 7 * 24 * time.Hour, "1h30m": 90 * time.Minute, "0": 0, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond} {
		var v lengthValue
		if err := v.Set(text); err != nil || time.Duration(v) != want || v.String() != want.String() {
			t.Errorf("%s: %s %v", text, v.String(), err)
		}
	}
	for text, want := range map[string]string{"5": "5s or 5m?", "-5m": "a length of time cannot be negative", "2 hours": "write 2h"} {
		var v lengthValue
		if err := v.Set(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}
