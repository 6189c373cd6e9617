package cli

import (
	"strings"
	"time"

	"lanjobs/task"
)

// waits says why a job of which nothing runs does not get on, so that nobody waits in silence: once it has stood for a moment, when
// the reason becomes another one, and every 30 s.
type waits struct {
	idle map[task.JobID]time.Duration // since when nothing of it runs
	said map[task.JobID]saidLine
}

// waitsAfter is how long nothing may run before that is worth a line: between two shards there is always a moment.
const waitsAfter = 2 * time.Second

// update gives the sentence that is due for a job, "" if none is.
func (w *waits) update(j *task.JobView, now time.Duration) string {
	if w.idle == nil {
		w.idle, w.said = map[task.JobID]time.Duration{}, map[task.JobID]saidLine{}
	}
	if j.State.Final() || j.Note == "" || j.Shards.Running+j.Shards.Assigned > 0 {
		delete(w.idle, j.ID)
		return ""
	}
	since, idle := w.idle[j.ID]
	if !idle {
		w.idle[j.ID] = now
		return ""
	}
	last, reason := w.said[j.ID], withoutDigits(j.Note)
	if now-since < waitsAfter || reason == last.text && now-last.at < lineEvery {
		return ""
	}
	w.said[j.ID] = saidLine{text: reason, at: now}
	return "waits: " + j.Note
}

// withoutDigits makes one text of reasons that differ in how long is left.
func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
