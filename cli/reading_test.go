package cli

import (
	"context"
	"strings"
	"testing"
)

// stuck is a pipe that nobody writes to.
type stuck struct{ asked func() }

func (s stuck) Read([]byte) (int, error) { s.asked(); select {} }

// One Ctrl-C is enough, whatever is being read.
func TestCtrlCEndsReading(t *testing.T) {
	for _, line := range []string{"submit -", "submit job.yaml -", "run -", "simulate -", "join m --token-file -"} {
		t.Run(line, func(t *testing.T) {
			b := newBench(t)
			b.write("job.yaml", helloFile)
			ctx, cancel := context.WithCancelCause(t.Context())
			b.w.stdin = stuck{func() { cancel(errInterrupted) }}
			if code := execute(ctx, b.w, append([]string{"lanjobs"}, strings.Fields(line)...)); code != exitInterrupted || ctx.Err() == nil {
				t.Errorf("exit %d\n%s", code, b.err.String())
			}
		})
	}
}

// What is no file of one line is not read to its end: a device has none.
func TestSecretsAreSmall(t *testing.T) {
	b := newBench(t)
	b.write("large", strings.Repeat("x", maxSecret+1))
	b.expect(exitUsage, "join", "m", "--token-file", "large")
	b.wants("stderr", b.err.String(), "large is larger than 4 KiB")
}
