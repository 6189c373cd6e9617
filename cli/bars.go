package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"lanjobs/task"
)

const (
	barCells  = 24
	barRows   = 20 // stages shown of one job; a screen is not endless
	newsLines = 5  // kept below the bars
)

// bars redraws a block per job in place, and leaves the last one.
type bars struct {
	c      *call
	lines  int // of the last frame
	jobs   []task.JobView
	news   *news
	recent []string
}

func (b *bars) event(e task.Event) { b.news.add(e) }

func (b *bars) update(jobs []task.JobView) {
	b.jobs, b.news.many = jobs, len(jobs) > 1
	b.draw("")
}

func (b *bars) trouble(text string) { b.draw(text) }

func (b *bars) close() {}

func (b *bars) draw(trouble string) {
	s := b.c.err()
	for _, text := range b.news.take() {
		b.recent = append(b.recent, b.c.clock.Wall().Local().Format(time.TimeOnly)+"  "+text)
	}
	b.recent = b.recent[max(len(b.recent)-newsLines, 0):]
	var out []string
	for i := range b.jobs {
		out = append(out, jobBlock(s, &b.jobs[i])...)
	}
	if trouble != "" {
		out = append(out, "  "+s.text(trouble))
	}
	if s.width > 1 { // a line that the terminal wraps would break the count of lines
		for i := range out {
			out[i] = s.clip(out[i], s.width-1)
		}
	}
	for _, r := range b.recent {
		out = append(out, s.wrap(s.text(r), 2, 12)...)
	}
	out = s.fit(out)
	_, _ = b.c.stderr.Write(overdraw(b.lines, out))
	b.lines = len(out)
}

// jobBlock is a job with a bar per stage.
func jobBlock(s *screen, j *task.JobView) []string {
	name := fmt.Sprintf("%s %s", j.Name, j.ID)
	age := length(runSeconds(j))
	if rest := left(j); rest != "" {
		age += ", " + rest
	}
	if j.State != task.JobRunning {
		age += "  " + string(j.State)
	}
	out := []string{s.text(fmt.Sprintf("%-*s %s", barCells+30, name, age))}
	width := 0
	for _, st := range j.Stages {
		width = max(width, utf8.RuneCountInString(st.Name))
	}
	for i, st := range j.Stages {
		if i == barRows {
			out = append(out, s.text(fmt.Sprintf("  … and %d more stages", len(j.Stages)-i)))
			break
		}
		out = append(out, fmt.Sprintf("  %-*s  %s", width, st.Name, stageBar(s, st)))
	}
	return out
}

func stageBar(s *screen, st task.StageView) string {
	n := st.Shards
	switch st.State {
	case "waiting":
		if len(st.Needs) > 0 {
			return s.text("· waits for " + strings.Join(st.Needs, ", "))
		}
		return s.text("· waits")
	case "succeeded":
		return s.text(fmt.Sprintf("✓ %d/%d", n.Succeeded, n.Total))
	case "skipped":
		return s.text("· skipped")
	case "failed", "cancelled":
		return s.text(fmt.Sprintf("✕ %d/%d  %s, %d dead", n.Succeeded, n.Total, st.State, n.Failed))
	}
	return fmt.Sprintf("%s  %d/%d   %s", s.bar(n.Succeeded, n.Total, barCells), n.Succeeded, n.Total,
		s.text(fmt.Sprintf("%d running · %d retrying · %d dead", n.Running+n.Assigned, n.Backoff, n.Failed)))
}

// runSeconds is how long a job has run, or ran. Only lengths measured by the cluster are used: this machine's clock may be wrong.
func runSeconds(j *task.JobView) float64 {
	switch {
	case j.Started != nil && j.Ended != nil:
		return j.Ended.Sub(*j.Started).Seconds()
	case j.Started != nil:
		return j.AgeSeconds - j.Started.Sub(j.Submitted).Seconds()
	}
	return j.AgeSeconds
}

// left guesses the rest from the pace so far, once there is something to guess from.
func left(j *task.JobView) string {
	n := j.Shards
	if j.State != task.JobRunning || n.Succeeded < 3 || n.Succeeded*10 < n.Total {
		return ""
	}
	todo := n.Total - n.Succeeded - n.Failed - n.Cancelled
	return "about " + short(runSeconds(j)*float64(todo)/float64(n.Succeeded)) + " left"
}
