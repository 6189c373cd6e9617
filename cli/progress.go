package cli

import (
	"fmt"
	"time"

	"lanjobs/task"
)

// progressDisplay is bars on a terminal and lines elsewhere, both on standard error.
func (c *call) progressDisplay() display {
	switch {
	case c.opt.quiet:
		return silent{}
	case c.errTTY:
		return &bars{c: c, news: newNews()}
	}
	return &lines{c: c, news: newNews()}
}

// silent shows nothing.
type silent struct{}

func (silent) update([]task.JobView) {}
func (silent) event(task.Event)      {}
func (silent) trouble(string)        {}
func (silent) close()                {}

// lineEvery bounds the silence of lines; lineMost how often one stage may speak without having changed its state.
const (
	lineEvery = 30 * time.Second
	lineMost  = time.Second
)

// lines writes one line per change, and one at least every 30 s.
type lines struct {
	c     *call
	news  *news
	calm  bool // only for jobs with more than one shard: the output of a single one speaks for itself
	said  map[string]saidLine
	waits waits
	stuck bool
}

type saidLine struct {
	text, state string
	at          time.Duration
}

func (l *lines) update(jobs []task.JobView) {
	l.stuck, l.news.many = false, len(jobs) > 1
	for _, text := range l.news.take() {
		l.line(text)
	}
	for i := range jobs {
		j := &jobs[i]
		if text := l.waits.update(j, l.c.clock.Awake()); text != "" {
			l.line(jobPrefix(jobs, j) + text)
		}
		if l.calm && j.Shards.Total <= 1 {
			continue
		}
		for _, st := range j.Stages {
			if st.State == "waiting" {
				continue
			}
			l.stage(jobPrefix(jobs, j)+st.Name, st)
		}
	}
}

func (l *lines) stage(name string, st task.StageView) {
	if l.said == nil {
		l.said = map[string]saidLine{}
	}
	now, last := l.c.clock.Awake(), l.said[name]
	text := name + " " + stageWords(st)
	if text == last.text && now-last.at < lineEvery || text == last.text && st.State != "open" {
		return
	}
	if st.State == last.state && last.text != "" && now-last.at < lineMost {
		return
	}
	l.said[name] = saidLine{text, st.State, now}
	l.line(text)
}

func (l *lines) line(text string) {
	l.c.say("%s %s", l.c.clock.Wall().Local().Format(time.TimeOnly), text)
}

func (l *lines) event(e task.Event) { l.news.add(e) }

func (l *lines) trouble(text string) {
	if !l.stuck {
		l.stuck = true
		l.line(text + " Waiting.")
	}
}

func (l *lines) close() {
	for _, text := range l.news.take() {
		l.line(text)
	}
}

// stageWords is "14/24 done, 6 running, 1 retrying, 0 dead".
func stageWords(st task.StageView) string {
	n := st.Shards
	words := fmt.Sprintf("%d/%d done, %d running", n.Succeeded, n.Total, n.Running+n.Assigned)
	if n.Backoff > 0 {
		words += fmt.Sprintf(", %d retrying", n.Backoff)
	}
	if n.Failed > 0 {
		words += fmt.Sprintf(", %d dead", n.Failed)
	}
	if n.Cancelled > 0 {
		words += fmt.Sprintf(", %d cancelled", n.Cancelled)
	}
	if st.State != "open" {
		words += " (" + st.State + ")"
	}
	return words
}

// jobPrefix names the job in front of its stage where there are several.
func jobPrefix(jobs []task.JobView, j *task.JobView) string {
	if len(jobs) < 2 {
		return ""
	}
	return j.Name + "/"
}
