package transport

import (
	"context"
	"crypto/x509"
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

// request has the other side prove who it is and asks it, over a connection of its own for each try, until somebody leads.
func (cfg JoinConfig) request(ctx context.Context, host, addr string, prove func(chain []*x509.Certificate) error, path string, request, reply any) error {
	once := func() error {
		conn, err := cfg.reach(ctx, host, addr, prove)
		if err != nil {
			return err
		}
		defer conn.Close()
		return cfg.ask(ctx, conn, addr, path, request, reply)
	}
	for start := cfg.Clock.Awake(); ; {
		err := once()
		if _, ok := errors.AsType[leaderless](err); !ok || cfg.Clock.Awake()-start >= leaderPatience || cfg.pause(ctx, pairRetry) != nil {
			return plain(err)
		}
	}
}

// pause waits; the error is the context's cause.
func (cfg JoinConfig) pause(ctx context.Context, d time.Duration) error {
	timer := cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
