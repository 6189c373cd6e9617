package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
)

func nodeGroup() *group {
	return &group{name: "node", short: "the machines of the cluster", commands: []*command{
		{name: "ls", short: "list machines", takes: takesNode | takesOutput | takesWatch | takesSelector, run: runNodeLs},
		{name: "show", operands: "NODE", min: 1, max: 1, short: "one machine in full", takes: takesNode | takesOutput | takesWatch, run: runNodeShow},
		{name: "drain", operands: "[NODE]", max: 1, short: "give it nothing new; what runs may end, or moves",
			long: `What moves is stopped as by its stop_grace and goes on elsewhere from its last checkpoint; no attempt is counted for it.
Example: lanjobs node drain nas --deadline 1h --wait --reason "new disk"`,
			takes: takesNode | takesOutput | takesWait, run: runNodeDrain,
			flags: []urfave.Flag{
				lengthFlag("deadline", 0, "what runs may end within `TIME`, as 1h, then it moves (0: it moves at once)"),
				&urfave.BoolFlag{Name: "self", Usage: "this machine"},
				&urfave.StringFlag{Name: "reason", Usage: "`TEXT` for status and the audit log"},
			}},
		{name: "resume", operands: "[NODE]", max: 1, short: "end a drain", takes: takesNode | takesOutput, run: runNodeResume,
			flags: []urfave.Flag{&urfave.BoolFlag{Name: "self", Usage: "this machine"}}},
		{name: "wake", operands: "NODE", min: 1, max: 1, short: "wake a sleeping machine by the network (Wake-on-LAN)", takes: takesNode | takesOutput, run: runNodeWake,
			long: `The other machines send the packets on every network that they are in. The sleeping one must allow it: in its firmware, in its
system ("Wake for network access", the card's driver), mostly by cable only. Success shows in lanjobs status.`},
		{name: "label", operands: "NODE KEY=VALUE…|KEY-…", min: 2, max: -1, short: "set labels from afar; KEY- removes one",
			takes: takesNode | takesOutput, run: runNodeLabel},
		{name: "rm", operands: "NODE", min: 1, max: 1, short: "remove a machine for good; it is shut out at once", takes: takesNode | takesYes, run: runNodeRm,
			flags: []urfave.Flag{&urfave.BoolFlag{Name: "force", Usage: "even if too few voters would be left to change anything"}}},
		{name: "promote", operands: "NODE", min: 1, max: 1, short: "let it vote before all others", takes: takesNode | takesOutput, run: runNodePromote,
			long: `How many vote is the cluster's own business: 1 of one or two machines, 3 from three on, 5 from seven. A promoted machine takes the
seat of the one that is there least. --auto takes a promote or demote back.`,
			flags: []urfave.Flag{&urfave.BoolFlag{Name: "auto", Usage: "leave it to the leader again"}}},
		{name: "demote", operands: "NODE", min: 1, max: 1, short: "let it never vote; it still runs jobs", takes: takesNode | takesOutput, run: runNodeDemote,
			long: `For machines that sleep or leave often. Taken back by: lanjobs node promote NODE --auto`},
		{name: "clear", operands: "NODE", min: 1, max: 1, short: `end "unstable": give it work again after crashes`, takes: takesNode | takesOutput, run: runNodeClear},
	}}
}

func runNodeLs(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		nodes, err := gather[task.NodeView](ctx, cl, "/v1/nodes", nil, nil)
		if err != nil {
			return answer{}, c.explainDoor(err)
		}
		nodes.Kind, nodes.Items = "NodeList", keepNodes(c.opt.selector, nodes.Items)
		a := answer{value: nodes, items: anys(nodes.Items), table: nodeTable(nodes.Items, false, c.clock.Wall()), wide: nodeTable(nodes.Items, true, c.clock.Wall())}
		for _, n := range nodes.Items {
			a.names = append(a.names, n.Name)
		}
		if len(nodes.Items) == 0 {
			a.foot = []string{"No such machines. All: lanjobs node ls"}
		}
		return a, nil
	})
}

// keepNodes chooses by labels, the automatic ones included.
func keepNodes(selector []task.Requirement, nodes []task.NodeView) []task.NodeView {
	out := []task.NodeView{}
	for _, n := range nodes {
		labels := slices.SortedFunc(slices.Values(n.Labels), func(a, b task.KV) int { return strings.Compare(a.Name, b.Name) })
		info := &task.NodeInfo{Name: n.Name, OS: n.OS, Arch: n.Arch, Laptop: n.Laptop, Labels: labels}
		if len(task.Unmatched(selector, info)) == 0 {
			out = append(out, n)
		}
	}
	return out
}

func nodeTable(nodes []task.NodeView, wide bool, now time.Time) table {
	t := table{head: []string{"NODE", "ROLE", "STATE", "LOAD", "RUNNING", "SEEN"}}
	if wide {
		t.head = append(t.head, "SLOTS", "ARCH", "VERSION", "ID", "ADDRESSES")
	}
	t.head = append(t.head, "LABELS", "")
	for _, n := range nodes {
		row := []cell{{text: n.Name}, {text: n.Role}, state(n.State), {text: loadText(n)}, {text: runningText(n)}, {text: shorter(n.SeenSeconds)}}
		if wide {
			row = append(row, cells(itoa(n.Slots), n.Arch, n.Version, string(n.ID), orElse(strings.Join(n.Addresses, ","), "-"))...)
		}
		row = append(row, cell{text: labelText(append([]task.KV{{Name: "os", Value: n.OS}}, n.Labels...))}, cell{text: noteText(n, now)})
		t.rows = append(t.rows, row)
	}
	return t
}

// loadText is processors busy of those there are; of a silent machine nothing is known.
func loadText(n task.NodeView) string {
	if n.Load == nil || n.State == "silent" || n.State == "asleep" {
		return "-"
	}
	return fmt.Sprintf("%.1f/%d", n.Load.CPU, n.CPUs)
}

func runningText(n task.NodeView) string {
	if n.State == "left" {
		return "-"
	}
	return itoa(n.Running)
}

func noteText(n task.NodeView, now time.Time) string {
	note := sleepNote(n, now)
	if n.Refusal != "" {
		note = strings.TrimPrefix(note+"; "+n.Refusal, "; ")
	}
	if note == "" {
		return ""
	}
	return "(" + note + ")"
}

// sleepNote is a machine's note with the clock times of its sleep, which are this person's and not the cluster's.
func sleepNote(n task.NodeView, now time.Time) string {
	if n.Since == nil {
		return n.Note
	}
	at := shortStamp(*n.Since, now)
	switch {
	case n.State == "asleep":
		return strings.TrimSuffix("since "+at+", "+n.Note, ", ")
	case n.State == "silent":
		return strings.Replace(n.Note, "asleep?", "asleep since "+at+"?", 1)
	case strings.HasPrefix(n.Note, "slept "):
		return n.Note + ", back since " + at
	}
	return n.Note
}

func runNodeShow(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		n := &task.NodeView{}
		if err := cl.get(ctx, nodePath(c.args[0], ""), nil, n); err != nil {
			return answer{}, c.explainDoor(err)
		}
		return c.nodeAnswer(n), nil
	})
}

func (c *call) nodeAnswer(n *task.NodeView) answer {
	head := []string{fmt.Sprintf("%s   %s   %s", n.Name, n.Role, n.State)}
	add := func(name, value string) {
		if value != "" && value != "-" {
			head = append(head, fmt.Sprintf("  %-10s %s", name, oneLine(value)))
		}
	}
	add("id", string(n.ID))
	add("system", n.OS+"/"+n.Arch)
	add("version", n.Version)
	if n.Limits != "" {
		add("limits", n.Limits) // of memory and cpu in job files
	}
	if n.Since != nil {
		add("since", stamp(*n.Since, c.clock.Wall()))
	}
	if n.SeenSeconds != nil {
		add("seen", short(*n.SeenSeconds)+" ago")
	}
	add("load", loadText(*n))
	add("running", fmt.Sprintf("%d of %d slots", n.Running, n.Slots))
	add("labels", labelText(n.Labels))
	add("addresses", strings.Join(n.Addresses, ", "))
	add("seat", n.Seat)
	add("awake", awakeText(n))
	for _, line := range rulesText(n) {
		add(line[0], line[1])
	}
	add("note", sleepNote(*n, c.clock.Wall()))
	add("refused", n.Refusal)
	return answer{value: n, names: []string{n.Name}, head: head}
}

// rulesText are the rules of a machine's owner, those left out that are as they are by default.
func rulesText(n *task.NodeView) (lines [][2]string) {
	r := n.Rules
	if len(r.RefuseQueues) > 0 {
		lines = append(lines, [2]string{"refuses", "queue " + strings.Join(r.RefuseQueues, ", ")})
	}
	if r.RunAs != "" {
		lines = append(lines, [2]string{"run as", r.RunAs})
	}
	if len(r.AllowUsers) > 0 {
		lines = append(lines, [2]string{"users", "job files may name " + strings.Join(r.AllowUsers, ", ")})
	}
	if r.Inhibit != "" && r.Inhibit != task.DefaultInhibit {
		lines = append(lines, [2]string{"inhibit", r.Inhibit})
	}
	if r.Inhibit != "" && r.ReservePercent != task.DefaultReserve {
		lines = append(lines, [2]string{"reserve", fmt.Sprintf("%d %% of it stays free of jobs", r.ReservePercent)})
	}
	return lines
}

// awakeText says whether a machine is kept awake while something runs on it, and what feeds it.
func awakeText(n *task.NodeView) string {
	if n.Load == nil || !answers(n) {
		return ""
	}
	text := n.Load.Awake
	if text == "" {
		text = "may sleep: nothing runs"
	}
	if n.Load.Battery {
		text += "; on battery now"
	}
	return text
}

func nodePath(ref, act string) string {
	p := "/v1/nodes/" + url.PathEscape(ref)
	if act != "" {
		p += "/" + act
	}
	return p
}
