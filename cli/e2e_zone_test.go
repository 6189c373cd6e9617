//go:build e2e && linux

package cli_test

import (
	"bytes"
	bits "encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// zoneFile is a zone whose clocks show 02:00 at a moment and are changed by some seconds right then, in the format of RFC 8536.
func zoneFile(at time.Time, change int32) []byte {
	day := int32(at.Unix() % 86_400)
	before := 2*3600 - day // so that it is 02:00 there
	if before < -12*3600 {
		before += 86_400
	}
	var b bytes.Buffer
	b.WriteString("TZif" + strings.Repeat("\x00", 16))
	for _, v := range []any{[6]uint32{0, 0, 0, 1, 2, 8}, int32(at.Unix()), byte(1), // counts; one change, to the second kind of time
		before, byte(0), byte(0), before + change, byte(1), byte(4)} {
		_ = bits.Write(&b, bits.BigEndian, v) // a buffer takes everything
	}
	b.WriteString("BEF\x00AFT\x00")
	return b.Bytes()
}

// TestProcClocksChange: real nodes in zones whose clocks are changed while they run. A time in the skipped hour runs at the first moment
// after it, and what runs every minute does not notice (R32).
func TestProcClocksChange(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	zones := filepath.Join(l.dir, "zones", "Made")
	if err := os.MkdirAll(zones, 0o755); err != nil {
		t.Fatal(err)
	}
	n := l.add("a", fmt.Sprintf("127.0.0.1:%d", l.port))
	n.wrap = []string{"env", "ZONEINFO=" + filepath.Dir(zones)}
	l.start()
	change := time.Now().Add(20 * time.Second).Truncate(time.Minute).Add(time.Minute) // the schedules are there by then
	for name, seconds := range map[string]int32{"Skipping": 3600, "Doubling": -3600} {
		if err := os.WriteFile(filepath.Join(zones, name), zoneFile(change, seconds), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, when := range map[string]string{"skipped": `{cron: "30 2 * * *", timezone: Made/Skipping}`, "doubled": `{cron: "0 1 * * *", timezone: Made/Doubling}`,
		"minutes": `{cron: "* * * * *", timezone: Made/Doubling}`} {
		file := l.jobFile(name, "name: "+name+"\nschedule: "+when+"\nrun: 'true'\n")
		if out, code := l.command(append(n.wrap, "LANJOBS_DATA_DIR="+n.dir, l.exe, "submit", file)...); code != 0 {
			t.Fatal(out)
		}
	}
	l.waitFor(time.Until(change)+90*time.Second, "the minute after the change has run", func() bool {
		return len(l.firedAt(n, "minutes", change.Add(time.Minute))) > 0
	})
	for name, want := range map[string]int{"skipped": 1, "minutes": 1, "doubled": 0} {
		if got := l.firedAt(n, name, change); len(got) != want {
			t.Errorf("%s: %d runs for the moment of the change, want %d", name, len(got), want)
		}
	}
}

// firedAt are the runs of a schedule that were planned for a moment.
func (l *lab) firedAt(n *member, schedule string, at time.Time) (out []task.RunView) {
	var v task.ScheduleView
	if l.ask(n, &v, "schedule", "show", schedule) {
		for _, r := range v.Runs {
			if r.ScheduledFor != nil && r.ScheduledFor.Equal(at) {
				out = append(out, r)
			}
		}
	}
	return out
}
