package cli

import (
	"context"
	"fmt"
	"strings"

	"lanjobs/task"
)

func statusRow() *command {
	return &command{
		name: "status", short: "the cluster, its machines, its jobs",
		long:  `Exit 0: healthy. 1: degraded. 3: no node here. 6: no leader; what is shown may be old.`,
		takes: takesNode | takesOutput | takesWatch | takesSelector,
		run:   runStatus,
	}
}

func runStatus(ctx context.Context, c *call) error {
	cl, _, err := c.connect(ctx)
	if err != nil {
		return err
	}
	health := ""
	err = c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		v := &task.ClusterView{}
		if err := cl.get(ctx, "/v1/status", nil, v); err != nil {
			return answer{}, c.explainDoor(err)
		}
		health = v.Health
		return c.statusAnswer(v), nil
	})
	if err != nil {
		return err
	}
	switch health {
	case "degraded":
		return silently(exitBad)
	case "no_leader":
		return silently(exitUnreachable)
	}
	return nil
}

func (c *call) statusAnswer(v *task.ClusterView) answer {
	v.Nodes = keepNodes(c.opt.selector, v.Nodes)
	a := answer{value: v, names: []string{orElse(v.Name, v.SelfName)}, head: []string{statusLine(v)}}
	if v.StaleSeconds > 0 {
		a.head = append(a.head, fmt.Sprintf("no leader: this is what was known %s ago", short(v.StaleSeconds)))
	}
	if v.LevelSentence != "" {
		a.head = append(a.head, v.LevelSentence)
	}
	a.head = append(a.head, v.Notices...)
	wide := c.opt.output == "wide"
	a.table = nodeTable(v.Nodes, wide, c.clock.Wall())
	if wide {
		a.more = []table{wideJobTable(v.Jobs)}
	} else {
		a.more = []table{jobTable(v.Jobs)}
	}
	if len(v.Jobs) == 0 {
		a.foot = []string{"No jobs. Hand one in: lanjobs submit job.yaml"}
	}
	return a
}

// statusLine is "home   healthy   leader mini-1   3 voters: survives 1 failure   lanjobs 1.4.0".
func statusLine(v *task.ClusterView) string {
	words := []string{orElse(v.Name, "this machine only"), strings.ReplaceAll(v.Health, "_", " ")}
	if v.Name != "" {
		words = append(words, "leader "+orElse(v.LeaderName, "none"))
		if v.Sentence != "" {
			words = append(words, v.Sentence)
		}
	}
	return strings.Join(append(words, "lanjobs "+v.Version), "   ")
}
