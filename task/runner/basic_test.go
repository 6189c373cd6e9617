package runner

import (
	"testing"

	"lanjobs/task"
)

func taskCommand(c *TaskClient, args []string) int { return 0 }

func TestRunsAScript(t *testing.T) {
	b := newBench(t)
	x, e := b.run(script(`echo hello; echo oops >&2; echo "n=42" >> "$LANJOBS_OUTPUT"`))
	if e.Outcome.End != task.EndExited || e.Outcome.ExitCode != 0 {
		t.Fatalf("outcome %+v", e.Outcome)
	}
	if got := b.log(x, "stdout"); got != "hello\n" {
		t.Errorf("stdout %q", got)
	}
	if got := b.log(x, "stderr"); got != "oops\n" {
		t.Errorf("stderr %q", got)
	}
	if len(e.Outputs) != 1 || e.Outputs[0] != (task.KV{Name: "n", Value: "42"}) {
		t.Errorf("outputs %v", e.Outputs)
	}
	b.r.Forget(x)
}
