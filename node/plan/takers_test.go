package plan

import "testing"

// TestTakersAreNamed: a machine without a job of ours may be busy all the same; who reads why a shard waits must not look for a job.
func TestTakersAreNamed(t *testing.T) {
	for want, c := range map[string]struct {
		what        string
		jobs, taken int
	}{
		"; other programs use 2":                               {"cpu", 0, 1997},
		"; jobs have booked 1.5":                               {"cpu", 1500, 1500},
		"; jobs have booked 0.25; other programs use 1.13":     {"cpu", 250, 1376},
		"; jobs have booked 4 GiB; other programs use 300 MiB": {"memory", 4096, 4396},
	} {
		if got := takers(c.what, c.jobs, c.taken); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
