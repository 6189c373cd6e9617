package cli

import (
	"fmt"
	"strings"

	"lanjobs/task"
)

// showSubmitted prints the id, and what a person should know about the job on standard error.
func (c *call) showSubmitted(r *task.SubmitReply) error {
	if !c.machine() {
		if _, err := fmt.Fprintln(c.stdout, orElse(string(r.ID), r.Schedule)); err != nil {
			c.say("lanjobs: submitted %s, but that could not be written.", orElse(string(r.ID), r.Schedule))
			return err
		}
	}
	switch {
	case r.Schedule != "":
		c.saidScheduled(r)
	case r.Existed:
		c.say("lanjobs: %s was submitted before with this key; this is the same job. Its state: lanjobs show %s", r.Name, r.ID)
	case r.Note != "":
		c.say("%s", submittedBut(r))
	case !c.opt.wait && c.errTTY:
		c.say("%s is on its way. Follow it: lanjobs logs %s -f · its state: lanjobs show %s", r.Name, r.ID, r.ID)
	}
	return nil
}

// saidScheduled tells when a job with a schedule runs, and what may keep it from that.
func (c *call) saidScheduled(r *task.SubmitReply) {
	verb := "is scheduled"
	if r.Existed {
		verb = "was there before and is now as in this file"
	}
	next := "it has no further time"
	if r.Next != nil {
		when := "in " + short(r.Next.Due.Sub(c.clock.Wall()).Seconds())
		if here := localTime(r.Next.Due); here != r.Next.Local { // another zone
			when = here + " here, " + when
		}
		next = fmt.Sprintf("next %s (%s)", r.Next.Local, when)
	}
	c.say("lanjobs: %s %s: %s. Its times: lanjobs schedule show %s", r.Schedule, verb, next, r.Schedule)
	if r.Note != "" {
		c.say("lanjobs: %s, but %s.", r.Schedule, strings.TrimRight(r.Note, "."))
	}
}

func submittedBut(r *task.SubmitReply) string {
	return fmt.Sprintf("lanjobs: submitted %s, but %s. Why: lanjobs show %s --why", r.ID, strings.TrimRight(r.Note, "."), r.ID)
}

// shardCount counts a job's shards in words, and says so where a stage gets them only when it opens.
func shardCount(spec *task.Spec) string {
	shards, later := 0, 0
	for _, st := range spec.Stages {
		if st.Shards == 0 {
			later++
		}
		shards += st.Shards
	}
	switch {
	case later == 0:
		return count(shards, "shard")
	case shards == 0:
		return "shards counted when the stage opens"
	}
	return count(shards, "shard") + " and those of " + count(later, "stage") + " counted when it opens"
}
