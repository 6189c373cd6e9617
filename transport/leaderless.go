package transport

import (
	"context"
	"errors"
	"time"

	"lanjobs/task"
)

// leaderPatience is how long a member is asked again that answers but knows no leader: an election takes a moment, and whoever joins
// or logs in meanwhile should not have to type the command twice. Who is out of reach is not asked again: a person can do
// something about that, and hears of it at once.
const leaderPatience = 30 * time.Second

// leaderless is the answer of a member that the cluster has no leader now. The request may be repeated under the same key: it costs
// no second use of a token.
type leaderless struct{ *task.Problem }

func (l leaderless) Unwrap() error { return l.Problem }

// plain gives the problem behind it for whoever does not ask again.
func plain(err error) error {
	if l, ok := errors.AsType[leaderless](err); ok {
		return l.Problem
	}
	return err
}

// untilLed asks again while the answer is that nobody leads.
func (v *visit) untilLed(ctx context.Context, ask func() error) error {
	for start := v.Clock.Awake(); ; {
		err := ask()
		if _, ok := errors.AsType[leaderless](err); !ok || v.Clock.Awake()-start >= leaderPatience || v.pause(ctx, pairRetry) != nil {
			return plain(err)
		}
	}
}

// pause waits; the error is the context's cause.
func (v *visit) pause(ctx context.Context, d time.Duration) error {
	timer := v.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
