package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func doctorRow() *command {
	return &command{
		name: "doctor", short: "checks of a machine and its network", takes: takesNode | takesOutput,
		long: `Checks disk, sleep, clock, ports, voters and more; each finding has a line of what helps. --all has every machine check itself
and its way to the others. Without a node here it checks what it can. Exit 1: something is bad.
--fix mends on this machine what does no harm: a data folder that others may read, a quarantined program, and as
administrator the rule of Windows' firewall.`,
		flags: []urfave.Flag{
			&urfave.StringFlag{Name: "node", Usage: "check machine `NODE`"},
			&urfave.BoolFlag{Name: "all", Usage: "check every machine"},
			&urfave.BoolFlag{Name: "fix", Usage: "mend here what can be mended without harm"},
		},
		run: runDoctor,
	}
}

// doctorPatience is how long the checks may take: a machine that is asked waits for others.
const doctorPatience = 60 * time.Second

func runDoctor(ctx context.Context, c *call) error {
	one, all, fix := c.flags.String("node"), c.flags.Bool("all"), c.flags.Bool("fix")
	switch {
	case one != "" && all:
		return usage(c.path, "--node and --all: give one.")
	case fix && (one != "" || all):
		return usage(c.path, "--fix is for this machine: run it there.")
	}
	l, err := c.examine(ctx, one, all)
	if err != nil {
		return err
	}
	var did []string
	if fix {
		if did, err = c.fixHere(ctx, l.Items[0]); err != nil {
			return err
		}
		if len(did) > 0 {
			if l, err = c.examine(ctx, one, all); err != nil {
				return err
			}
		}
	}
	a, bad := doctorAnswer(l)
	for _, line := range did {
		c.say("fixed  %s", line)
	}
	if fix && len(did) == 0 {
		c.say("Nothing here can be fixed by itself.")
	}
	if err := c.show(a); err != nil {
		return err
	}
	switch {
	case bad:
		return silently(exitBad)
	case one != "" && l.Items[0].Silent:
		return silently(exitUnreachable)
	}
	return nil
}

// examine has the machines that are meant checked: by the node here, or without one by this process.
func (c *call) examine(ctx context.Context, one string, all bool) (*task.List[*task.DoctorView], error) {
	l := &task.List[*task.DoctorView]{}
	cl := c.clientHere() // this machine is meant, not the one that a login happens to reach
	if one != "" || all {
		cl = c.client()
	}
	cl.slow = nil
	var body transport.DoctorBody
	names := map[task.NodeID]string{}
	switch {
	case one != "":
		n := &task.NodeView{}
		if err := cl.get(ctx, nodePath(one, ""), nil, n); err != nil {
			return nil, c.explainDoor(err)
		}
		body.Nodes, names[n.ID] = []task.NodeID{n.ID}, n.Name
	case all:
		ns := &task.List[task.NodeView]{}
		if err := cl.get(ctx, "/v1/nodes", nil, ns); err != nil {
			return nil, c.explainDoor(err)
		}
		for _, n := range ns.Items {
			body.Nodes, names[n.ID] = append(body.Nodes, n.ID), n.Name
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	c.say("Checking; this takes some seconds …")
	err = cl.try(ctx, request{method: "POST", path: "/v1/doctor", body: text, limit: doctorPatience}, l)
	switch {
	case errors.Is(err, transport.ErrNoNode) && one == "" && !all:
		cfg, err := c.nodeConfig(serveFlags{})
		if err != nil {
			return nil, err
		}
		l.Kind, l.Items = "DoctorList", []*task.DoctorView{c.nodes.check(ctx, cfg)}
	case err != nil:
		return nil, c.explainDoor(err)
	}
	for _, v := range l.Items {
		if v.Name == "" {
			v.Name = names[v.Node]
		}
	}
	return l, nil
}

func (c *call) fixHere(ctx context.Context, v *task.DoctorView) ([]string, error) {
	cfg, err := c.nodeConfig(serveFlags{})
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(c.clusterPort(ctx, cfg.DataDir))
	if err != nil {
		return nil, err
	}
	return c.nodes.fix(ctx, cfg, c.goos, port, v.Findings), nil
}

// doctorAnswer lays the findings out, with a column for the machine if there are several. bad: one of them is.
func doctorAnswer(l *task.List[*task.DoctorView]) (a answer, bad bool) {
	a = answer{value: l, items: anys(l.Items)}
	several := len(l.Items) > 1
	row := func(v *task.DoctorView, cs ...cell) {
		if several {
			cs = append([]cell{{text: v.Name}}, cs...)
		}
		a.table.rows = append(a.table.rows, cs)
	}
	if several {
		a.table.head = []string{"NODE", "LEVEL", "CHECK", "FINDING"}
	}
	bads, warns := 0, 0
	for _, v := range l.Items {
		a.names = append(a.names, v.Name)
		if v.Silent {
			row(v, cell{"silent", red}, cell{text: "-"}, cell{text: v.Why})
			warns++
		}
		for _, f := range v.Findings {
			row(v, cell{string(f.Level), levelStyle(f.Level)}, cell{text: f.Check}, cell{text: f.Text})
			if f.Fix != "" && f.Level != task.LevelOK {
				row(v, cell{}, cell{}, cell{text: "fix: " + f.Fix})
			}
		}
		bads, warns = bads+v.Count(task.LevelBad), warns+v.Count(task.LevelWarn)
	}
	a.foot = []string{fmt.Sprintf("%d bad, %s", bads, count(warns, "warning"))}
	if bads+warns == 0 {
		a.foot = []string{"All is well."}
	}
	return a, bads > 0
}

func levelStyle(l task.Level) style {
	switch l {
	case task.LevelOK:
		return green
	case task.LevelWarn:
		return yellow
	case task.LevelBad:
		return red
	}
	return grey
}
