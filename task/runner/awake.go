package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"lanjobs/task"
)

// InhibitPolicy is the owner's word on when lanjobs may keep a machine awake (R15).
type InhibitPolicy string

// The policies.
const (
	InhibitAlways InhibitPolicy = "always" // while something runs
	InhibitMains  InhibitPolicy = "mains"  // the same, but not on battery
	InhibitNever  InhibitPolicy = "never"
)

// InhibitPolicies are all, the default first.
var InhibitPolicies = []string{string(InhibitMains), string(InhibitAlways), string(InhibitNever)}

// Hold is one machine held awake. Release ends it; so does the end of this process, however it comes. Lost is closed when the system
// has let go by itself; nil where it never does.
type Hold struct {
	What    string // what is held back: "sleep and idle"
	Release func()
	Lost    <-chan struct{}
}

// Inhibitor keeps this machine awake by the means of its system. SystemInhibitor is the real one.
type Inhibitor interface {
	Take() (*Hold, error)
	// Check tells why Take would fail, nil as far as can be known without taking anything.
	Check() error
}

// Lengths of Awake.
const (
	// inhibitLinger: what is held is let go so long after the last attempt, so that a queue of short ones does not ask the system a
	// hundred times a second.
	inhibitLinger = time.Second
	// batteryTick is how often a machine with a battery is asked what feeds it while something runs.
	batteryTick = 15 * time.Second
	// inhibitRetry is how long a refusal by the system is believed.
	inhibitRetry = time.Minute
)

// AwakeConfig is what an Awake is made of.
type AwakeConfig struct {
	Policy    InhibitPolicy
	Inhibitor Inhibitor
	OnBattery func() bool // nil = never
	Clock     task.Clock
	Log       *slog.Logger
}

// Awake holds the machine awake while something runs, as its owner allows, and only then (I14). It belongs to the agent: a crash
// lets go of it, and the next agent takes it again with the attempts that the guard has kept.
type Awake struct {
	cfg    AwakeConfig
	change chan struct{} // one pending change is enough

	mu     sync.Mutex // guards all below
	runs   bool
	finish bool // something that runs asked to be finished before the machine sleeps
	state  string
}

// NewAwake makes one that holds nothing yet; Run does the work.
func NewAwake(cfg AwakeConfig) *Awake {
	if cfg.OnBattery == nil {
		cfg.OnBattery = func() bool { return false }
	}
	a := &Awake{cfg: cfg, change: make(chan struct{}, 1)}
	a.state = a.idle()
	return a
}

// Want says whether something runs, and whether any of it has on_sleep: finish. It never waits.
func (a *Awake) Want(runs, finish bool) {
	a.mu.Lock()
	same := a.runs == runs && a.finish == finish
	a.runs, a.finish = runs, finish
	a.mu.Unlock()
	if same {
		return
	}
	select {
	case a.change <- struct{}{}:
	default:
	}
}

// State is how it stands, for a person: "held: sleep and idle", "not held: on battery", "cannot be held: …", "never held
// (--inhibit never)"; "" = nothing runs, and nothing speaks against holding it.
func (a *Awake) State() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// idle is the state while nothing is held nor wanted.
func (a *Awake) idle() string {
	if a.cfg.Policy == InhibitNever {
		return "never held (--inhibit never)"
	}
	if err := a.cfg.Inhibitor.Check(); err != nil {
		return "cannot be held: " + err.Error()
	}
	return ""
}

// Run holds and lets go until ctx ends; then nothing is held.
func (a *Awake) Run(ctx context.Context) error {
	var h holder
	defer h.release()
	for {
		wait := a.turn(&h)
		var lost <-chan struct{}
		if h.hold != nil {
			lost = h.hold.Lost
		}
		timer := a.cfg.Clock.NewTimer(wait)
		select {
		case <-a.change:
		case <-lost:
			h.release()
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// holder is what Run keeps between two turns.
type holder struct {
	hold    *Hold
	idled   bool          // nothing has been wanted since idle
	idle    time.Duration // awake clock
	refused error
	retry   time.Duration // awake clock; not asked again before
}

func (h *holder) release() {
	if h.hold != nil {
		h.hold.Release()
		h.hold = nil
	}
}

// turn does what is due and tells how long nothing is.
func (a *Awake) turn(h *holder) (wait time.Duration) {
	a.mu.Lock()
	runs, finish := a.runs, a.finish
	a.mu.Unlock()
	now := a.cfg.Clock.Awake()
	if !runs {
		if h.hold == nil {
			a.tell(a.idle())
			return time.Hour
		}
		if !h.idled {
			h.idled, h.idle = true, now
		}
		if left := h.idle + inhibitLinger - now; left > 0 {
			return left
		}
		h.release()
		a.tell(a.idle())
		return time.Hour
	}
	h.idled = false
	if why := a.forbidden(finish); why != "" {
		h.release()
		a.tell(why)
		return batteryTick
	}
	if h.hold == nil && (h.refused == nil || now >= h.retry) {
		h.hold, h.refused = a.cfg.Inhibitor.Take()
		if h.refused != nil {
			h.hold, h.retry = nil, now+inhibitRetry
		}
	}
	if h.hold == nil {
		a.tell("cannot be held: " + h.refused.Error())
		return min(batteryTick, max(h.retry-now, time.Second))
	}
	a.tell("held: " + h.hold.What)
	return batteryTick
}

// forbidden is why the owner does not want the machine held now, "" if he does. A task that is to be finished is finished on
// battery too.
func (a *Awake) forbidden(finish bool) string {
	switch {
	case a.cfg.Policy == InhibitNever:
		return "never held (--inhibit never)"
	case a.cfg.Policy == InhibitMains && !finish && a.cfg.OnBattery():
		return "not held: on battery (--inhibit mains)"
	}
	return ""
}

// tell keeps the state and says in the log what changed.
func (a *Awake) tell(state string) {
	a.mu.Lock()
	was := a.state
	a.state = state
	a.mu.Unlock()
	if was != state && state != "" {
		a.cfg.Log.Info("machine awake", "state", state)
	}
}
