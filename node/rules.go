package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// Rules are what the owner of a machine lets the cluster do with it (R46). They are kept: a machine that is started again without a
// word about them still obeys them, or a forgotten flag would run tasks as root. Only its own command line changes them.
type Rules struct {
	Refuses    []string `json:"refuses,omitempty"`     // queues of which it takes nothing; nil = as before, empty = none
	RunAs      *string  `json:"run_as,omitempty"`      // the user that tasks run as which ask for none; nil = as before, "" = the node's own
	AllowUsers []string `json:"allow_users,omitempty"` // users that tasks may ask for; nil = as before, empty = none
	// Inhibit is when the machine may be kept awake for its tasks (R15); "" = as before, runner.InhibitMains at first.
	Inhibit runner.InhibitPolicy `json:"inhibit,omitempty"`
	Reserve *int                 `json:"reserve,omitempty"` // percent of the machine that attempts leave free (R34); nil = as before
	// Labels are those that the machine was given by its own command line; nil = as before, empty = none.
	Labels []task.KV `json:"labels,omitempty"`
}

// over gives the rules of before with those that were told anew.
func (r Rules) over(before Rules) Rules {
	if r.Refuses == nil {
		r.Refuses = before.Refuses
	}
	if r.RunAs == nil {
		r.RunAs = before.RunAs
	}
	if r.AllowUsers == nil {
		r.AllowUsers = before.AllowUsers
	}
	if r.Inhibit == "" {
		r.Inhibit = before.Inhibit
	}
	if r.Reserve == nil {
		r.Reserve = before.Reserve
	}
	if r.Labels == nil {
		r.Labels = before.Labels
	}
	return r
}

// inhibit is the policy that holds.
func (r Rules) inhibit() runner.InhibitPolicy {
	if r.Inhibit == "" {
		return runner.InhibitMains
	}
	return r.Inhibit
}

// told tells whether there is any word in them.
func (r Rules) told() bool {
	return r.Refuses != nil || r.RunAs != nil || r.AllowUsers != nil || r.Inhibit != "" || r.Reserve != nil || r.Labels != nil
}

// maxRules bounds each list; what a machine says of itself must stay small.
const maxRules = 32

// fault is what is wrong with them, nil if nothing is.
func (r Rules) fault() error {
	for _, list := range [][]string{r.Refuses, r.users()} {
		if len(list) > maxRules {
			return fmt.Errorf("%d queues or users: at most %d", len(list), maxRules)
		}
		for _, name := range list {
			if name == "" || len(task.UserLabel+name) > task.MaxNameLength || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
				return fmt.Errorf("%q is not the name of a queue or user", name)
			}
		}
	}
	if r.Inhibit != "" && !slices.Contains(runner.InhibitPolicies, string(r.Inhibit)) {
		return fmt.Errorf("--inhibit %q: use %s", r.Inhibit, strings.Join(runner.InhibitPolicies, ", "))
	}
	if r.Reserve != nil && (*r.Reserve < 0 || *r.Reserve > maxReserve) {
		return fmt.Errorf("--reserve %d: use 0 to %d percent", *r.Reserve, maxReserve)
	}
	return nil
}

// maxReserve is the most that a machine may keep for itself, in percent: with more it could run nothing.
const maxReserve = 90

func (r Rules) runAs() string {
	if r.RunAs == nil {
		return ""
	}
	return *r.RunAs
}

// describe says the rules of a machine in what it tells the cluster: queues by name, users as labels.
func (r Rules) describe(i *task.NodeInfo) {
	i.Refuses = slices.Sorted(slices.Values(r.Refuses))
	if r.Reserve != nil {
		if i.Reserve = *r.Reserve; i.Reserve == 0 {
			i.Reserve = -1
		}
	}
	i.RunAs, i.Inhibit = r.runAs(), string(r.Inhibit)
	for _, user := range r.users() {
		i.Labels = append(i.Labels, task.KV{Name: task.UserLabel + user, Value: "true"})
	}
}

// users are all whom a job may ask to run as, each once.
func (r Rules) users() (out []string) {
	for _, u := range append([]string{r.runAs()}, r.AllowUsers...) {
		if u != "" && !slices.Contains(out, u) {
			out = append(out, u)
		}
	}
	return out
}

// keepRules joins the rules that this start was told to those that are kept, and checks that the machine can obey them.
func (m *machine) keepRules() error {
	told := m.cfg.Rules
	if m.cfg.Labels != nil {
		told.Labels = m.cfg.Labels
	}
	rules := told.over(m.settings.Rules)
	m.cfg.Labels = rules.Labels
	dir, err := filepath.Abs(filepath.Join(m.cfg.DataDir, "runner"))
	if err != nil {
		return err
	}
	if err := runner.CheckUsers(rules.runAs(), rules.AllowUsers, dir); err != nil {
		return err
	}
	if len(rules.users()) > 0 && os.Getuid() == 0 {
		if err := letThrough(m.cfg.DataDir); err != nil {
			return fmt.Errorf("let the users of tasks reach their working directories: %w", err)
		}
	}
	m.settings.Rules = rules
	if !told.told() {
		return nil
	}
	return m.store.SetSettings(m.settings)
}

// keptRules are those of a data folder whose node does not run; none if there are none, or none that this version can read.
func keptRules(dataDir string) (Rules, error) {
	if _, err := os.Stat(filepath.Join(dataDir, localFile)); err != nil {
		return Rules{}, nil
	}
	store, err := openLocalStore(dataDir)
	if errors.Is(err, errNewer) || errors.Is(err, errStoreDamaged) {
		return Rules{}, nil
	}
	if err != nil {
		return Rules{}, err
	}
	s, err := store.Settings()
	return s.Rules, errors.Join(err, store.Close())
}

// letThrough lets other users pass through the data folder on the way to their tasks' working directories. They cannot list it, and all
// else in it is closed to them.
func letThrough(dataDir string) error {
	entries, err := os.ReadDir(dataDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dataDir, e.Name())
		switch {
		case e.Name() == "runner" || e.Type()&fs.ModeSymlink != 0:
			continue
		case e.IsDir():
			err = os.Chmod(path, 0o700)
		default:
			err = os.Chmod(path, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return os.Chmod(dataDir, 0o711)
}
