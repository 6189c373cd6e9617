package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
)

// How often a follower looks: quickly at first, so that a short job ends as soon as it is done, then once a second.
const (
	followFirst = 100 * time.Millisecond
	followMost  = time.Second
)

// display shows jobs while they run.
type display interface {
	update(jobs []task.JobView) // what they are now
	event(e task.Event)         // something that happened to one of them
	trouble(text string)        // the node cannot say at the moment
	close()                     // nothing more comes
}

// followed is one job on its way.
type followed struct {
	id     task.JobID
	view   *task.JobView
	cursor eventCursor
}

// follow asks for jobs until all have ended, and shows what happened to them after from. What it knew last it gives with an error, too. What keeps it from asking is shown and
// waited for: only the person gives up.
func follow(ctx context.Context, clock task.Clock, cl *client, ids []task.JobID, from eventCursor, d display) ([]task.JobView, error) {
	defer d.close()
	jobs := make([]*followed, len(ids))
	for i, id := range ids {
		jobs[i] = &followed{id: id, cursor: from}
	}
	start := clock.Awake()
	for {
		all, err := look(ctx, cl, jobs, d)
		switch {
		case ctx.Err() != nil:
			return views(jobs), context.Cause(ctx)
		case err != nil && exitCode(err) != exitUnreachable && exitCode(err) != exitNoNode:
			return nil, err
		case err != nil:
			d.trouble(strings.SplitN(explain(err), "\n", 2)[0])
		default:
			d.update(views(jobs))
			if all {
				return views(jobs), nil
			}
		}
		pause := min(max(followFirst, (clock.Awake()-start)/10), followMost)
		if wait(ctx, clock, pause) != nil {
			return views(jobs), context.Cause(ctx)
		}
	}
}

// unended leaves out the jobs that are known to have ended; all of them if none is known to go on.
func unended(ids []task.JobID, jobs []task.JobView) []task.JobID {
	out := slices.DeleteFunc(slices.Clone(ids), func(id task.JobID) bool {
		return slices.ContainsFunc(jobs, func(j task.JobView) bool { return j.ID == id && j.State.Final() })
	})
	if len(out) == 0 {
		return ids
	}
	return out
}

// look asks for what is new of all jobs that have not ended. The job is read before its events: when it has ended, the
// events read after that are its last.
func look(ctx context.Context, cl *client, jobs []*followed, d display) (allEnded bool, err error) {
	allEnded = true
	for _, f := range jobs {
		if f.view != nil && f.view.State.Final() {
			continue
		}
		v := &task.JobView{}
		if err := cl.get(ctx, "/v1/jobs/"+url.PathEscape(string(f.id)), nil, v); err != nil {
			return false, err
		}
		if err := f.readEvents(ctx, cl, d); err != nil {
			return false, err
		}
		f.view = v
		allEnded = allEnded && v.State.Final()
	}
	return allEnded, nil
}

// followKinds are the events that a display or a log stream cares about; renewals would be most of all there are.
var followKinds = []task.EventKind{task.EventLeaseGrant, task.EventLeaseExpire, task.EventLeaseRelease, task.EventShardState, task.EventStop, task.EventCheckpoint}

func (f *followed) readEvents(ctx context.Context, cl *client, d display) error {
	q := url.Values{"job": {string(f.id)}, "kind": {joinKinds(followKinds)}}
	return f.cursor.read(ctx, cl, q, func(e task.Event) error { d.event(e); return nil })
}

func joinKinds(kinds []task.EventKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ",")
}

func views(jobs []*followed) []task.JobView {
	var out []task.JobView
	for _, f := range jobs {
		if f.view != nil {
			out = append(out, *f.view)
		}
	}
	return out
}

// followToEnd follows jobs and makes their end the command's end.
func (c *call) followToEnd(ctx context.Context, cl *client, ids []task.JobID, from eventCursor) error {
	jobs, err := follow(ctx, c.clock, cl, ids, from, c.progressDisplay())
	if err != nil {
		return c.leftFollowing(ctx, unended(ids, jobs), err)
	}
	return c.outcome(jobs, true)
}

// leftFollowing says that the jobs go on without this command.
func (c *call) leftFollowing(ctx context.Context, ids []task.JobID, err error) error {
	id := string(ids[0])
	next := fmt.Sprintf("follow: lanjobs logs %s -f · its state: lanjobs show %s · stop it: lanjobs cancel %s", id, id, id)
	subject := "job " + id + " goes on"
	if len(ids) > 1 {
		subject = fmt.Sprintf("%d jobs go on", len(ids))
	}
	switch context.Cause(ctx) {
	case errInterrupted:
		return &exitError{code: exitInterrupted, detail: subject + ".", hint: next, cause: errInterrupted}
	case errTimedOut:
		return &exitError{code: exitTimeout, detail: fmt.Sprintf("%s passed (--timeout); %s.", c.opt.timeout, subject), hint: next, cause: errTimedOut}
	}
	return err
}

// outcome turns ended jobs into an exit code, and says what to do about bad ones. here: a node is here to be asked further.
func (c *call) outcome(jobs []task.JobView, here bool) error {
	bad := false
	for _, j := range jobs {
		if j.State == task.JobSucceeded || j.State == task.JobPartial {
			continue
		}
		bad = true
		text := fmt.Sprintf("lanjobs: %s %s %s", j.Name, j.ID, j.State)
		if j.Shards.Failed > 0 && j.Shards.Total > 1 {
			text += fmt.Sprintf(": %d of %s dead", j.Shards.Failed, count(j.Shards.Total, "shard"))
		}
		if j.Reason != "" {
			text += " (" + oneLine(j.Reason) + ")"
		}
		c.say("%s.", text)
		switch {
		case !here || j.State != task.JobFailed:
		case j.Shards.Failed > 0:
			c.say("%swhy: lanjobs show %s --dead · again, from its checkpoints: lanjobs retry %s --dead", indent, j.ID, j.ID)
		default:
			c.say("%swhy: lanjobs show %s --attempts · again, from its checkpoints: lanjobs retry %s", indent, j.ID, j.ID)
		}
	}
	if bad {
		return silently(exitBad)
	}
	return nil
}
