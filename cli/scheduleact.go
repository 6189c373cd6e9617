package cli

import (
	"context"
	"fmt"

	"lanjobs/task"
)

// setSchedules is pause and resume.
func setSchedules(act string) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		all, cl, err := c.schedules(ctx)
		if err != nil {
			return err
		}
		var views []task.ScheduleView
		for _, s := range all {
			v := &task.ScheduleView{}
			if err := cl.post(ctx, schedulePath(s.Name, act), struct{}{}, v); err != nil {
				return c.explainDoor(err)
			}
			views = append(views, *v)
			if !c.machine() {
				if err := c.done(nil, []string{v.Name}, "%s", scheduleSaid(v, act)); err != nil {
					return err
				}
			}
		}
		if c.machine() {
			return c.show(answer{value: oneOrList("ScheduleList", views)})
		}
		return nil
	}
}

func scheduleSaid(v *task.ScheduleView, act string) string {
	switch {
	case act == "pause":
		return fmt.Sprintf("%s is paused. Undo: lanjobs schedule resume %s", v.Name, v.Name)
	case len(v.Next) > 0:
		return fmt.Sprintf("%s runs again, next %s", v.Name, v.Next[0].Local)
	}
	return v.Name + " is resumed, but it is over: it has no further time"
}

// schedules looks all names up before anything is changed: a typing error in the third changes none.
func (c *call) schedules(ctx context.Context) ([]task.ScheduleView, *client, error) {
	cl, err := c.ask(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []task.ScheduleView
	for _, name := range c.args {
		v := task.ScheduleView{}
		if err := cl.get(ctx, schedulePath(name, ""), nil, &v); err != nil {
			return nil, nil, c.explainDoor(err)
		}
		out = append(out, v)
	}
	return out, cl, nil
}

func runScheduleTrigger(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	before, err := c.before(ctx, cl)
	if err != nil {
		return err
	}
	r := &task.SubmitReply{}
	if err := cl.post(ctx, schedulePath(c.args[0], "trigger"), struct{}{}, r); err != nil {
		return c.explainDoor(err)
	}
	if c.machine() {
		err = c.show(answer{value: r})
	} else {
		_, err = fmt.Fprintln(c.stdout, r.ID)
	}
	if err != nil {
		return err
	}
	switch {
	case r.Note != "":
		c.say("lanjobs: %s: %s.", r.ID, r.Note)
	case !c.opt.wait && c.errTTY:
		c.say("%s is on its way. Follow it: lanjobs logs %s -f · its state: lanjobs show %s", r.Name, r.ID, r.ID)
	}
	if !c.opt.wait {
		return nil
	}
	if err := c.untilMade(ctx, cl, r); err != nil {
		return err
	}
	return c.followToEnd(ctx, cl, []task.JobID{r.ID}, before)
}

// untilMade waits for the job of a run that starts when another one has ended.
func (c *call) untilMade(ctx context.Context, cl *client, r *task.SubmitReply) error {
	for {
		err := cl.get(ctx, jobPath(r.ID), nil, &task.JobView{})
		if exitCode(err) != exitNotFound {
			return c.explainDoor(err)
		}
		s := &task.ScheduleView{}
		if err := cl.get(ctx, schedulePath(r.Schedule, ""), nil, s); err != nil {
			return c.explainDoor(err)
		}
		if s.Waiting == nil {
			if err := cl.get(ctx, jobPath(r.ID), nil, &task.JobView{}); err != nil { // made meanwhile, or given up
				return c.explainDoor(err)
			}
			return nil
		}
		if wait(ctx, c.clock, followMost) != nil {
			return context.Cause(ctx)
		}
	}
}

func runScheduleRm(ctx context.Context, c *call) error {
	all, cl, err := c.schedules(ctx)
	if err != nil {
		return err
	}
	if len(all) > 1 {
		if err := c.confirm(fmt.Sprintf("Remove %d schedules?", len(all))); err != nil {
			return err
		}
	}
	for _, s := range all {
		if err := cl.delete(ctx, schedulePath(s.Name, ""), nil, nil); err != nil {
			return c.explainDoor(err)
		}
		if !c.machine() {
			if err := c.done(nil, []string{s.Name}, "%s is removed; its jobs stay", s.Name); err != nil {
				return err
			}
		}
	}
	if c.machine() {
		return c.show(answer{value: oneOrList("ScheduleList", all)})
	}
	return nil
}
