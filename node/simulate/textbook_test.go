package simulate_test

import (
	"strings"
	"testing"

	"lanjobs/node/simulate"
)

const textbook = `textbook: 8 shards on A B C, modulo, ttl 3, heartbeat 1, window from 7

t=0   triggered: job1
      A gets 0 3 6
      B gets 1 4 7
      C gets 2 5
t=4   B is lost
t=6   the leases of B end: 1 4 7
      B is silent
      A gets 4
      C gets 1 7
t=7   A has done 0 3 4 6
      C has done 1 2 5 7
      job1 succeeded
t=8   triggered: job2
      8 shards of job2 skipped by key
      job2 succeeded
t=9   triggered: job3
      8 shards of job3 skipped by key
      job3 succeeded

job1: succeeded, 8 of 8 done, A ran 4, C ran 4
job2: succeeded, 8 of 8 done
job3: succeeded, 8 of 8 done
`

func play(t *testing.T, s simulate.Scenario) string {
	t.Helper()
	var b strings.Builder
	if err := simulate.Run(s, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheTextbookTimeline(t *testing.T) {
	if got := play(t, simulate.Textbook()); got != textbook {
		t.Errorf("got:\n%s", got)
	}
}

func TestAScenarioFromAFileIsTheSame(t *testing.T) {
	s, err := simulate.Parse([]byte(`
name: textbook
workers: [A, B, C]
shards: 8
balance: modulo
ttl: 3
heartbeat: 1
window: 7
triggers: [0, 8, 9]
keyed: true
lost: {B: [4]}
until: 9
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := play(t, s); got != textbook {
		t.Errorf("got:\n%s", got)
	}
}

func TestWhatIsWrongWithAScenarioIsSaid(t *testing.T) {
	for text, want := range map[string]string{
		"workers: [A]\nshards: 8\nlost: {B: [1]}":       `no worker "B"`,
		"workers: [A]\nshards: 0":                       "shards: 0",
		"workers: [A]\nshards: 1\nretrys: 1":            "retrys",
		"workers: [A]\nshards: 1\nbalance: best":        "balance",
		"workers: [A, A]\nshards: 1":                    "twice",
		"workers: [A]\nshards: 1\nttl: 2\nheartbeat: 3": "heartbeat",
		"{": "cannot be read",
	} {
		if _, err := simulate.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestAWorkerThatComesBackTakesItsShareAgain(t *testing.T) {
	s := simulate.Scenario{Workers: []string{"A", "B"}, Shards: 4, Balance: "modulo", Triggers: []int{0, 10}, Lost: map[string][]int{"B": {0}}, Back: map[string][]int{"B": {5}}}
	got := play(t, s)
	for _, want := range []string{"A gets 0 1 2 3", "t=5   B is back", "A gets 0 2", "B gets 1 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}
