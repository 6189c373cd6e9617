package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lanjobs/node/doctor"
	"lanjobs/task"
	"lanjobs/transport"
)

// A wall clock may be anywhere: a machine whose battery is empty starts in 1970 or 2000, a wrong setting in 2099. No lease, token or
// certificate looks at one. Schedules do, and whatever is shown to people, so the machine says so in its status.

// era is before anything that this version can have seen: a clock that shows less has forgotten the year.
var era = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	clockEvery = 10 * time.Minute // between looks at the others' clocks
	clockSoon  = time.Minute      // the same while one is wrong: it may be set at any time
	clockFar   = 5 * time.Minute  // apart is worth a sentence in status; doctor says less
	clockAsk   = 2 * time.Second
)

// watchClock compares this machine's wall clock with the others', now and then.
func (m *machine) watchClock(ctx context.Context) {
	now, every := m.clock.Awake(), clockEvery
	if m.trouble.noted(aboutClock) {
		every = clockSoon
	}
	if m.clockSeen > 0 && now-m.clockSeen < every {
		return
	}
	ahead := m.clocksAhead(ctx)
	if len(ahead) > 0 || m.clockSeen > 0 {
		m.clockSeen = now // at the start it looks again until somebody answers
	}
	text := clockNote(m.clock.Wall(), ahead)
	if m.trouble.note(aboutClock, text) && text != "" {
		m.log.Warn(text)
	}
}

// clocksAhead is by how much the clocks of members that answer are ahead of this one's.
func (m *machine) clocksAhead(ctx context.Context) map[string]time.Duration {
	ctx, cancel := transport.WithTimeout(ctx, m.clock, clockAsk)
	defer cancel()
	var (
		asked sync.WaitGroup
		mu    sync.Mutex
	)
	out := map[string]time.Duration{}
	for _, id := range m.wire.book.IDs() {
		if id == m.identity.NodeID || !m.wire.gossip.Alive(id) {
			continue
		}
		asked.Go(func() {
			if ahead, ok := m.clockAhead(ctx, id); ok {
				mu.Lock()
				defer mu.Unlock()
				out[m.nameOf(id)] = ahead
			}
		})
	}
	asked.Wait()
	return out
}

// clockAhead asks a member for its clock, and takes half of the way there and back for how old the answer is.
func (m *machine) clockAhead(ctx context.Context, id task.NodeID) (ahead time.Duration, ok bool) {
	var ping transport.PingReply
	sent := m.clock.Awake()
	if m.caller.Call(ctx, id, transport.MethodPing, &transport.PingRequest{}, &ping) != nil || ping.Wall <= 0 {
		return 0, false
	}
	half := (m.clock.Awake() - sent) / 2
	return time.UnixMilli(ping.Wall).Add(half).Sub(m.clock.Wall()), true
}

// clockNote is what status says of this machine's wall clock, which shows now, and of the others', by how much they are ahead of it;
// "" if there is nothing to say.
func clockNote(now time.Time, ahead map[string]time.Duration) string {
	var far []string
	near := 0
	for _, name := range slices.Sorted(maps.Keys(ahead)) {
		d := ahead[name]
		if d.Abs() <= clockFar {
			near++
			continue
		}
		far = append(far, fmt.Sprintf("that of %s is %s %s", name, doctor.Apart(d), map[bool]string{true: "ahead", false: "behind"}[d > 0]))
	}
	what := "This machine's clock shows " + now.UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case now.Before(era):
		what += ", before this version was made"
		if len(far) > 0 {
			what += "; " + strings.Join(far, ", ")
		}
	case len(far) == 0:
		return ""
	default:
		what += "; " + strings.Join(far, ", ")
		switch {
		case near > len(far):
		case near < len(far) && len(far) > 1:
			what += ": this one is probably wrong"
		default:
			what += ": one of them is wrong"
		}
	}
	return what + ". Leases do not use clocks; schedules, and the times in logs and lists, do. What to do: lanjobs doctor --all"
}

// eraSeconds is a wall clock's Unix time, but no less than era: for counters that must not fall back.
func eraSeconds(clock task.Clock) uint64 { return uint64(max(clock.Wall().Unix(), era.Unix())) }
