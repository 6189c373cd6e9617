package node

import (
	"testing"

	"lanjobs/task/runner"
)

// What the owner said last about keeping the machine awake holds for every start that says nothing (R15).
func TestInhibitIsRemembered(t *testing.T) {
	dir := t.TempDir()
	start := func(said, want runner.InhibitPolicy) {
		t.Helper()
		m := &machine{cfg: Config{DataDir: dir, Name: "a", Rules: Rules{Inhibit: said}}}
		if err := m.openFolder(); err != nil {
			t.Fatal(err)
		}
		if got := m.settings.Rules.inhibit(); got != want {
			t.Errorf("said %q: %q, want %q", said, got, want)
		}
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}
	start("", runner.InhibitMains)
	start(runner.InhibitAlways, runner.InhibitAlways)
	start("", runner.InhibitAlways)
	start(runner.InhibitNever, runner.InhibitNever)
	start("", runner.InhibitNever)
}
