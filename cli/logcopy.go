package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// attempt names one run of a shard whose output is wanted; number 0 is the newest.
type attempt struct {
	job    task.JobID
	stage  string
	shard  int
	number int
}

func (a attempt) name() string { return a.stage + "/" + itoa(a.shard) }

func (a attempt) path() string {
	return fmt.Sprintf("/v1/jobs/%s/shards/%s/%d/attempts/%d/log", url.PathEscape(string(a.job)), url.PathEscape(a.stage), a.shard, a.number)
}

// How long a node may hold a log request until there is more, and the pause after an answer that brought nothing.
const (
	logHold  = 10 * time.Second
	logPause = 300 * time.Millisecond
)

// logCopy copies the output of one attempt.
type logCopy struct {
	cl      *client
	attempt attempt
	stream  string // stdout, stderr, "" = both as written
	tail    int    // only the last lines; 0 = all
	follow  bool   // until the attempt has ended
	// claim tells whether an execution's output may be copied: not if another copy has it already. nil = yes.
	claim func(execution string) bool
	// patience tells whether what is not there yet may still come: an attempt that was granted a moment ago has no log.
	patience func() bool
	trouble  func(error)
}

// to copies until the end, or without follow until there is no more now.
func (l *logCopy) to(ctx context.Context, w io.Writer) error {
	var from int64
	execution := ""
	for first := true; ; first = false {
		resp, err := l.cl.open(ctx, l.attempt.path(), l.query(from, first))
		if err != nil {
			if retry, err := l.afterFault(ctx, err); !retry {
				return err
			}
			continue
		}
		if now := resp.Header.Get(transport.HeaderLogAttempt); now != execution || first {
			if l.claim != nil && !l.claim(now) {
				return resp.Body.Close()
			}
			execution = now
			if !first {
				// A newer attempt has begun: what came now lies at an offset of the old one.
				from = 0
				resp.Body.Close()
				continue
			}
		}
		n, err := io.Copy(w, resp.Body)
		resp.Body.Close()
		next, end := logEnd(resp.Header, from+n)
		from = next
		switch {
		case err != nil && ctx.Err() == nil && !errors.As(err, new(*writeError)):
			if retry, err := l.afterFault(ctx, err); !retry {
				return err
			}
			continue
		case err != nil:
			return err
		case end || !l.follow && n == 0:
			return nil
		}
		if n == 0 && wait(ctx, l.cl.clock, logPause) != nil {
			return context.Cause(ctx)
		}
	}
}

func (l *logCopy) query(from int64, first bool) url.Values {
	q := url.Values{}
	if l.stream != "" {
		q.Set("stream", l.stream)
	}
	if l.tail > 0 && first {
		q.Set("tail", itoa(l.tail))
	} else {
		q.Set("from", strconv.FormatInt(from, 10))
	}
	if l.follow {
		q.Set("hold", itoa(int(logHold.Seconds())))
	}
	return q
}

// afterFault waits if the trouble may pass.
func (l *logCopy) afterFault(ctx context.Context, err error) (retry bool, _ error) {
	missing := errors.Is(err, task.ErrNotFound)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case !l.follow, l.patience == nil, !l.patience():
		return false, err
	case !missing && !l.cl.passing(err):
		return false, err
	case !missing && l.trouble != nil:
		l.trouble(err)
	}
	return wait(ctx, l.cl.clock, logPause) == nil, context.Cause(ctx)
}

// logEnd reads where the piece ends and whether there is more.
func logEnd(h http.Header, fallback int64) (next int64, end bool) {
	next, err := strconv.ParseInt(h.Get(transport.HeaderLogNext), 10, 64)
	if err != nil {
		next = fallback
	}
	return next, h.Get(transport.HeaderLogDone) == "true"
}
