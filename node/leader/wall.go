package leader

import (
	"time"

	"lanjobs/fsm"
)

// farAhead is how far after the cluster's last entry, or after the era, a leader's wall clock may be. Machines may all be off for long, so it is years:
// it is for clocks whose battery is empty or whose counter ran over, and which show 2099 or 2106.
const farAhead = 20 * 365 * 24 * time.Hour

// wall is the wall clock for schedules and for the stamps of entries: this machine's, unless that cannot be right. Fired by a
// clock that is decades ahead, schedules would have no next time for decades; stamped by one that has forgotten the year,
// everything would have happened in 1970. Then time goes on from the last entry's stamp, by the clock that needs no battery. No lease,
// retry or token depends on either.
func (t *term) wall(s *fsm.State) time.Time {
	shown, awake := t.cfg.Clock.Wall(), t.cfg.Clock.Awake()
	past, since := t.cfg.Era, awake-t.started
	if last := time.UnixMilli(s.Wall); s.Wall > 0 && !last.Before(past) {
		past, since = last, awake-t.measured
	}
	if !past.IsZero() && (shown.Before(t.cfg.Era) || shown.Sub(past) > farAhead) {
		return past.Add(since)
	}
	return shown
}
