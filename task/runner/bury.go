package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lanjobs/task"
)

// bury settles a dead guard as its journal tells. That stays until all of its attempts are forgotten.
func (r *Runner) bury(id string) error {
	j, card, err := openJournal(journalPath(r.cfg.Dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		j, card, err = nil, &hello{}, nil // it left with nothing in hand
	}
	if err != nil {
		return err
	}
	return r.settleDead(id, j, card.Cgroup)
}

// settleDead kills what a dead guard left, then ends its attempts as its journal says, and those that it does not tell the end of, or all
// if there is none, as lost.
func (r *Runner) settleDead(id string, j *journal, cgroup string) error {
	left := r.leftBy(id, j)
	r.killTrees(left, 0, cgroup)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, id)
	_ = os.Remove(r.guardSocket(id))
	for _, a := range left {
		a.link, a.grave = nil, j
		exit := &exitRecord{GuardDied: true}
		if j == nil {
			r.endLocked(a, exit)
			continue
		}
		switch e := j.live[a.x]; {
		case e == nil: // handed over, but it died before reading it
			a.grave = nil
		case e.exit != nil:
			exit = e.exit
		default:
			if err := j.ended(a.x, exit); err != nil {
				r.log.Warn("journal not written", "error", err)
			}
		}
		r.endLocked(a, exit)
	}
	if j == nil {
		return nil
	}
	for x := range j.live {
		if r.attempts[x] == nil { // a record that nobody understands, cut short by a full disk or a power cut: nobody would ever forget it
			if err := j.forget(x); err != nil {
				r.log.Warn("journal not written", "error", err)
			}
		}
	}
	if len(j.live) == 0 {
		return j.close()
	}
	return nil
}

// leftBy are the attempts of a dead guard: those that this agent handed to it, and those in its journal.
func (r *Runner) leftBy(id string, j *journal) []*attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*attempt
	for _, a := range r.attempts {
		if a.link != nil && a.link.hello.ID == id && !(a.ended && j == nil) {
			out = append(out, a)
		}
	}
	if j == nil {
		return out
	}
	for x, e := range j.live {
		if r.attempts[x] != nil {
			continue
		}
		if a := r.restore(x, e.record); a != nil {
			out = append(out, a)
		}
	}
	return out
}

// forgetDead is called with mu held.
func (r *Runner) forgetDead(j *journal, x task.ExecutionID) {
	err := j.forget(x)
	if len(j.live) == 0 {
		err = errors.Join(err, j.close())
	}
	if err != nil {
		r.log.Warn("journal not written", "error", err)
	}
}

// strayBound is how long processes may take to die before the agent goes on without their death.
const strayBound = 5 * time.Second

// killTrees kills the processes of attempts in place of their guard: dead if guard is 0, else frozen.
func (r *Runner) killTrees(attempts []*attempt, guard int, cgroup string) {
	if cgroup != "" && guard == 0 {
		removeCgroup(cgroup, func() { <-r.clock.After(5 * time.Millisecond) })
	}
	r.mu.Lock()
	var targets []target
	mains := map[int]bool{}
	for _, a := range attempts {
		targets = append(targets, target{pid: a.pid, heard: a.pidHeard, mark: markName + "=" + r.paths(a.x).dir})
	}
	for _, a := range r.attempts {
		if a.pid != 0 && !a.ended {
			mains[a.pid] = true
		}
	}
	r.mu.Unlock()
	if len(targets) == 0 {
		return
	}
	r.untilNone(func() (int, error) { return sweepTargets(targets, guard, mains) })
}

// target is one attempt to be killed from outside.
type target struct {
	pid   int // 0 = unknown
	heard task.Boot
	mark  string
}

// untilNone repeats a killing search until it finds nothing.
func (r *Runner) untilNone(search func() (int, error)) {
	begin := r.clock.Awake()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		n, err := search()
		switch {
		case err != nil:
			r.log.Error("cannot search for processes", "error", err)
			return
		case n == 0:
			return
		case r.clock.Awake()-begin > strayBound:
			r.log.Error("processes do not die", "count", n)
			return
		}
		<-r.clock.After(wait)
	}
}

// killStrays is the last net of Open: whatever carries a mark of this folder and is no attempt that a living guard runs (I13).
func (r *Runner) killStrays() {
	r.mu.Lock()
	keep := map[task.ExecutionID]bool{}
	for x, a := range r.attempts {
		keep[x] = !a.ended
	}
	r.mu.Unlock()
	prefix := markPrefix(r.cfg.Dir)
	r.untilNone(func() (int, error) { return sweepStrays(prefix, keep) })
}

// findTrash puts what lies in the attempt folder and belongs to nobody into the bin.
func (r *Runner) findTrash() error {
	entries, err := os.ReadDir(filepath.Join(r.cfg.Dir, "attempt"))
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[task.ExecutionID]bool{}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".")
		x := task.ExecutionID(id)
		if r.attempts[x] != nil {
			continue
		}
		if strings.HasSuffix(e.Name(), unfinished) {
			_ = os.Remove(filepath.Join(r.cfg.Dir, "attempt", e.Name()))
		}
		if !seen[x] {
			seen[x] = true
			r.discard(r.paths(x))
		}
	}
	return errors.Join(r.oldSockets(), r.oldWords())
}

// oldSockets removes an earlier agent's, except those of attempts that will get them again, and guards' own. mu is held.
func (r *Runner) oldSockets() error {
	entries, err := os.ReadDir(r.sockets)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if r.attempts[task.ExecutionID(e.Name())] == nil && !strings.HasPrefix(e.Name(), "g-") {
			_ = os.Remove(filepath.Join(r.sockets, e.Name()))
		}
	}
	return nil
}

// oldWords removes what is left beside the journals of guards that are gone once those are too: their words, a journal that was being
// written anew.
func (r *Runner) oldWords() error {
	entries, err := os.ReadDir(guardDir(r.cfg.Dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		id, _, _ := strings.Cut(e.Name(), ".")
		if _, err := os.Stat(journalPath(r.cfg.Dir, id)); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(filepath.Join(guardDir(r.cfg.Dir), e.Name()))
		}
	}
	return nil
}
