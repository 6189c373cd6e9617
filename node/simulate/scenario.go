package simulate

import (
	"fmt"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"lanjobs/task"
)

// Scenario is what is played. All times are ticks, from 0 on.
type Scenario struct {
	Name      string           `yaml:"name"`
	Workers   []string         `yaml:"workers"`   // in the order of their registration
	Slots     int              `yaml:"slots"`     // attempts that each runs at once; 0 = as many as there are shards
	Shards    int              `yaml:"shards"`    // of the job
	Balance   task.Balance     `yaml:"balance"`   // of its queue; "" = least-loaded
	TTL       int              `yaml:"ttl"`       // of leases; 0 = 3
	Heartbeat int              `yaml:"heartbeat"` // between renewals; 0 = 1
	RunFor    int              `yaml:"run_for"`   // that a shard takes at least; 0 = 1
	Window    int              `yaml:"window"`    // no shard ends before
	Triggers  []int            `yaml:"triggers"`  // when the job is submitted; none = once, at 0
	Keyed     bool             `yaml:"keyed"`     // shards have keys: what has succeeded once is skipped
	Lost      map[string][]int `yaml:"lost"`      // when a worker is lost
	Back      map[string][]int `yaml:"back"`      // when it is there again, as a new start
	Until     int              `yaml:"until"`     // last tick; 0 = when all is done and nothing is to come
}

// tick is how long one is. It is long enough for a TTL of one tick, and short enough that a first lease lasts the whole TTL.
const tick = 2 * task.Second

// Bounds of a scenario: it is played in well under a second.
const (
	maxWorkers = 50
	maxShards  = 10_000
	maxTicks   = 10_000
	maxTTL     = int(task.AssignTTL / tick)
)

// Textbook is the example of every book on sharding with leases: 8 shards by modulo on the workers A, B and C, TTL 3, a
// heartbeat each tick, B lost at 4, the window open from 7. B's shards 1, 4 and 7 move at 6, when its leases end, to C, A and
// C; all are done at 7; what is triggered again later is skipped by key.
func Textbook() Scenario {
	return Scenario{Name: "textbook", Workers: []string{"A", "B", "C"}, Shards: 8, Balance: task.BalanceModulo, TTL: 3, Heartbeat: 1,
		RunFor: 1, Window: 7, Triggers: []int{0, 8, 9}, Keyed: true, Lost: map[string][]int{"B": {4}}, Until: 9}
}

// Parse reads a scenario from YAML. Unknown keys are refused.
func Parse(data []byte) (Scenario, error) {
	var s Scenario
	if err := yaml.Load(data, &s, yaml.WithKnownFields()); err != nil {
		return Scenario{}, task.NewProblem(task.ErrInvalid, "the scenario cannot be read: "+strings.TrimSpace(err.Error()), "Its keys: name, workers, slots, shards, balance, ttl, heartbeat, run_for, window, triggers, keyed, lost, back, until")
	}
	return s, s.withDefaults().check()
}

func (s Scenario) withDefaults() Scenario {
	set := func(p *int, def int) {
		if *p == 0 {
			*p = def
		}
	}
	set(&s.Slots, max(s.Shards, 1))
	set(&s.TTL, 3)
	set(&s.Heartbeat, 1)
	set(&s.RunFor, 1)
	if s.Name == "" {
		s.Name = "scenario"
	}
	if len(s.Triggers) == 0 {
		s.Triggers = []int{0}
	}
	if s.Balance == "" {
		s.Balance = task.BalanceLeastLoaded
	}
	return s
}

// check gives the first thing that is wrong with a scenario whose defaults are filled in.
func (s Scenario) check() error {
	refuse := func(format string, args ...any) error {
		return task.NewProblem(task.ErrInvalid, fmt.Sprintf(format, args...), "")
	}
	within := func(what string, n, from, to int) error {
		if n < from || n > to {
			return refuse("%s: %d, but it is from %d to %d", what, n, from, to)
		}
		return nil
	}
	known := map[string]bool{}
	for _, w := range s.Workers {
		if w == "" || known[w] || strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' }) {
			return refuse("workers: %q is twice, empty or has blanks", w)
		}
		known[w] = true
	}
	for what, times := range map[string]map[string][]int{"lost": s.Lost, "back": s.Back} {
		for w, at := range times {
			if !known[w] {
				return refuse("%s: there is no worker %q", what, w)
			}
			for _, t := range at {
				if err := within(what, t, 0, maxTicks); err != nil {
					return err
				}
			}
		}
	}
	if !s.Balance.Known() {
		return refuse("balance: %q is none of %v", s.Balance, task.Balances)
	}
	for _, t := range s.Triggers {
		if err := within("triggers", t, 0, maxTicks); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		what        string
		n, from, to int
	}{
		{"workers", len(s.Workers), 1, maxWorkers}, {"shards", s.Shards, 1, maxShards}, {"slots", s.Slots, 1, maxShards}, {"ttl", s.TTL, 1, maxTTL},
		{"heartbeat", s.Heartbeat, 1, s.TTL}, {"run_for", s.RunFor, 1, maxTicks}, {"window", s.Window, 0, maxTicks}, {"until", s.Until, 0, maxTicks},
	} {
		if err := within(x.what, x.n, x.from, x.to); err != nil {
			return err
		}
	}
	return nil
}
