package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// logPlace is where an attempt's output lies.
type logPlace struct {
	ref       task.ShardRef
	token     task.Token
	node      task.NodeID
	name      string
	live      bool   // the attempt may still write
	tail      string // of a failed attempt, from its record
	gone      bool   // the machine is no member any more
	silent    bool
	silentFor string
}

// logError is the answer when the machine that has a log does not answer: what of it is in the ledger comes with it.
type logError struct {
	*task.Problem
	view transport.LogProblem
}

func (e *logError) Unwrap() error { return e.Problem }

// readLog answers GET …/attempts/{k}/log (R38): it asks the machine that ran the attempt.
func (a *API) readLog(ctx context.Context, q *request) (*reply, error) {
	r, err := logRequest(q)
	if err != nil {
		return nil, err
	}
	k, err := strconv.Atoi(q.value("k"))
	if err != nil || k < 0 {
		return nil, invalid("attempt "+shown(q.value("k"))+" is not a number from 0 on (0 is the newest)", "")
	}
	shard, err := q.shardNumber()
	if err != nil {
		return nil, err
	}
	var p logPlace
	err = a.onJob(q, func(v *view, j *fsm.Job) (err error) {
		p, err = v.logPlace(j, q.value("stage"), shard, k)
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.gone {
		return nil, p.away(" has left the cluster; its log went with it")
	}
	r.Job, r.Stage, r.Shard, r.Execution = p.ref.Job, p.ref.Stage, p.ref.Shard, p.token.Execution()
	return a.fetchLog(ctx, r, &p)
}

func logRequest(q *request) (*transport.LogRequest, error) {
	r := &transport.LogRequest{Stream: q.query.Get("stream"), Hold: task.MillisOf(q.hold)}
	if r.Stream != "" && r.Stream != "stdout" && r.Stream != "stderr" {
		return nil, invalid("stream "+shown(r.Stream)+" is neither stdout nor stderr", "leave it out for both as they were written")
	}
	var err error
	if r.Tail, err = q.count("tail", 0, 1_000_000); err != nil {
		return nil, err
	}
	if r.Limit, err = q.count("limit", maxLogPiece, maxLogPiece); err != nil {
		return nil, err
	}
	if text := q.query.Get("from"); text != "" {
		if r.From, err = strconv.ParseInt(text, 10, 64); err != nil || r.From < 0 {
			return nil, invalid("from "+shown(text)+" is not a number of bytes", "")
		}
		if r.Tail > 0 {
			return nil, invalid("from and tail exclude each other", "")
		}
	}
	return r, nil
}

// logPlace finds attempt k of a shard, 0 = the newest.
func (v *view) logPlace(j *fsm.Job, stage string, shard, k int) (logPlace, error) {
	i := j.Spec.Stage(stage)
	if i < 0 {
		return logPlace{}, noStage(j, stage)
	}
	sh := j.Shard(i, shard)
	name := fmt.Sprintf("%s/%s/%d", j.ID, stage, shard)
	if sh == nil {
		return logPlace{}, noShard(j, i, shard)
	}
	p := logPlace{ref: task.ShardRef{Job: j.ID, Stage: i, Shard: shard}}
	h := sh.History()
	current := sh.State.Leased() || sh.State == task.ShardSucceeded
	switch {
	case sh.Tries == 0:
		return p, task.NewProblem(task.ErrNotFound, name+" has not run yet.", fmt.Sprintf("Why: lanjobs show %s --why", name))
	case k > int(sh.Tries):
		return p, task.NewProblem(task.ErrNotFound, fmt.Sprintf("%s has had %s so far.", name, plural(int(sh.Tries), "attempt", "attempts")), "")
	case current && (k == 0 || k == int(sh.Tries)):
		p.token, p.node, p.live = sh.Token, v.NodeByPlace(sh.Node).Info.ID, sh.State.Leased()
	case k == 0 && len(h) > 0:
		p.take(&h[len(h)-1])
	default:
		for n := range h {
			if h[n].Number == k {
				p.take(&h[n])
			}
		}
	}
	if p.token == 0 {
		return p, task.NewProblem(task.ErrNotFound, fmt.Sprintf("where attempt %d of %s ran is no longer recorded.", k, name),
			fmt.Sprintf("It is in the audit log: lanjobs events --job %s --kind lease.grant", j.ID))
	}
	n := v.Node(p.node)
	p.name, p.gone = v.nameOf(p.node), n == nil || n.Gone != ""
	if n != nil && v.silent(n) {
		p.silent, p.silentFor = true, v.silentFor(n)
	}
	return p, nil
}

func (p *logPlace) take(a *task.AttemptRecord) {
	p.token, p.node, p.tail = a.Token, a.Node, a.Outcome.Tail
}

// fetchLog asks the machine.
func (a *API) fetchLog(ctx context.Context, r *transport.LogRequest, p *logPlace) (*reply, error) {
	bound, cancel := transport.WithTimeout(ctx, a.clock, r.Hold.Duration()+logWait)
	defer cancel()
	var piece transport.LogReply
	err := a.cfg.Peers.Call(bound, p.node, transport.MethodReadLog, r, &piece)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, task.ErrNotFound) && p.live:
		// Granted a moment ago: the machine has not begun to write. Whoever holds the line waits a little.
		a.pause(ctx, min(r.Hold.Duration(), time.Second))
		piece = transport.LogReply{Next: r.From}
	case errors.Is(err, task.ErrNotFound):
		return nil, p.missing()
	case err != nil && (errors.Is(err, task.ErrNoLeader) || bound.Err() != nil):
		if p.silent {
			return nil, p.away(" is silent" + p.silentFor + "; its log is on that machine")
		}
		return nil, p.away(" does not answer; its log is on that machine")
	case err != nil:
		return nil, err
	}
	rep := textReply(piece.Data).
		set(transport.HeaderLogNext, strconv.FormatInt(piece.Next, 10)).
		set(transport.HeaderLogDone, strconv.FormatBool(piece.Done)).
		set(transport.HeaderLogAttempt, string(p.token.Execution()))
	return rep, nil
}

func (p *logPlace) away(what string) error {
	e := &logError{Problem: task.NewProblem(task.ErrNoLeader, p.name+what+".", "")}
	if p.gone {
		e.Problem = task.NewProblem(task.ErrNotFound, p.name+what+".", "")
	}
	if p.tail != "" {
		e.Hint = "The end of it is in the ledger: lanjobs show " + string(p.ref.Job) + " --attempts"
	}
	e.view = transport.LogProblem{Problem: *e.Problem, Tail: p.tail}
	return e
}

// missing: the machine answers and has no such log; it keeps them for a while only.
func (p *logPlace) missing() error {
	e := &logError{Problem: task.NewProblem(task.ErrNotFound, p.name+" no longer has this attempt's output.", "")}
	e.view = transport.LogProblem{Problem: *e.Problem, Tail: p.tail}
	return e
}

var _ http.ResponseWriter = (*capture)(nil)
