package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func joinRow() *command {
	return &command{
		name: "join", operands: "[PEER]", max: 1, short: "make this machine a member of a cluster",
		takes: takesNode | takesOutput | takesYes,
		long: `PEER is any member: its name or an address, with :PORT if it is not the usual one. Without PEER the clusters of the local network
are looked for. This machine shows a code, which somebody types on a member: lanjobs approve CODE. With a token of
"lanjobs token create" nobody is asked. --token shows it in the list of processes of this machine; --token-file does not.
With -o json the code comes first, as a PairingCode of its own.`,
		flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "token-file", Usage: "read the token from `FILE`, - = standard input"},
			&urfave.StringFlag{Name: "token", Usage: "the `TOKEN` itself"},
			&urfave.StringFlag{Name: "node-name", Usage: "call this machine `NAME` (its host name)"},
			&urfave.StringFlag{Name: "listen", Usage: "`ADDR[:PORT]` of the cluster port here"},
			&urfave.BoolFlag{Name: "worker", Usage: "run jobs only, never vote"},
			&urfave.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` of this machine; kept, \"\" takes all back"},
			&urfave.BoolFlag{Name: "foreground", Usage: "stay here and be the node"},
			&urfave.BoolFlag{Name: "replace", Usage: "put the data of the node here aside, even of another cluster"},
		}, ruleFlags()...),
		run: runJoin,
	}
}

// joinPatience is how long a joined node may take until the cluster counts it in.
const joinPatience = 60 * time.Second

func runJoin(ctx context.Context, c *call) error {
	if len(c.args) > 0 { // before anything is done
		if _, err := peerAddress(c.path, c.args[0]); err != nil {
			return err
		}
	}
	listen, err := listenAddress(c.path, c.flags.String("listen"))
	if err != nil {
		return err
	}
	token, err := c.readToken()
	if err != nil {
		return err
	}
	f := serveFlags{listen: listen, name: c.flags.String("node-name"), labels: c.flags.StringSlice("label"), rules: c.rules()}
	cfg, err := c.nodeConfig(f)
	if err != nil {
		return err
	}
	makeRoom, err := c.room(ctx, strings.Join(append(c.args, "MACHINE")[:1], ""))
	if err != nil {
		return err
	}
	peer, err := c.peer(ctx, cfg, token)
	if err != nil {
		return err
	}
	enter := func(ctx context.Context) (string, error) {
		return c.nodes.join(ctx, cfg, peer, token, c.flags.Bool("worker"))
	}
	if token == "" {
		a, err := c.pair(ctx, cfg, peer)
		if err != nil {
			return err
		}
		enter = a.join
	}
	if err := makeRoom(ctx); err != nil {
		return err
	}
	cluster, err := enter(ctx)
	if err != nil {
		return err
	}
	if c.flags.Bool("foreground") {
		c.say("✓ joined \"%s\" as %s", cluster, cfg.Name)
		return c.serve(ctx, cfg)
	}
	v, err := c.startNode(ctx, f)
	if err != nil {
		return err
	}
	if v, err = c.untilMember(ctx, v); err != nil {
		return err
	}
	if !c.flags.Bool("worker") {
		v = c.untilSeated(ctx, v)
	}
	if err := c.done(v, []string{cluster}, "✓ joined \"%s\" as %s", cluster, joinedAs(v, cfg.Name, c.flags.Bool("worker"))); err != nil {
		return err
	}
	c.saidStarted(v)
	return nil
}

// peerAddress is HOST:PORT of an operand.
func peerAddress(path, s string) (string, error) {
	_, addr, err := transport.PeerAddr(s)
	if err != nil {
		return "", usage(path, "%q: write a host name or an address, with :PORT if it is not %s.", s, defaultPort)
	}
	return addr, nil
}

// readToken takes the token from where it is.
func (c *call) readToken() (string, error) {
	token, file := c.flags.String("token"), c.flags.String("token-file")
	switch {
	case token != "" && file != "":
		return "", usage(c.path, "--token and --token-file: give one.")
	case file == "-":
		if c.inTTY {
			c.say("Token: ")
		}
		line, _ := bufio.NewReader(io.LimitReader(c.stdin, maxSecret)).ReadString('\n')
		token = line
	case file != "":
		text, err := c.readSmall(file)
		if err != nil {
			return "", usage(c.path, "%v", err)
		}
		token = string(text)
	}
	token = strings.TrimSpace(token)
	if token == "" && (file != "" || c.flags.IsSet("token")) {
		return "", usage(c.path, "the token is empty. On a member: lanjobs token create")
	}
	return token, nil
}

// room sees whether a node is in the way, and gives what makes it leave: nothing is changed before this machine was let in. The
// data of one that does not run is put aside by the join itself.
func (c *call) room(ctx context.Context, peer string) (makeRoom func(context.Context) error, err error) {
	replace := c.flags.Bool("replace")
	cl, v, err := c.connectHere(ctx)
	if errors.Is(err, transport.ErrNoNode) {
		cluster, exists := nodeHere(c.dataDir())
		switch {
		case !exists || replace:
			return func(context.Context) error { return nil }, nil
		case cluster != "":
			return nil, belongs(cluster, 0, peer)
		}
		return nil, &exitError{code: exitConflict, detail: fmt.Sprintf("a node that does not run has its data in %s.", c.dataDir()),
			hint: fmt.Sprintf("start it: lanjobs serve · or put its data aside: lanjobs join %s --replace", peer), cause: task.ErrConflict}
	}
	if err != nil {
		return nil, err
	}
	todo := unfinished(v.Jobs)
	if !replace && (v.Name != "" || todo > 0) {
		return nil, belongs(v.Name, todo, peer)
	}
	return func(ctx context.Context) error {
		c.say("The node here leaves %s; its data is put aside.", clusterName(v.Name))
		return c.leave(ctx, cl, replace)
	}, nil
}

func unfinished(jobs []task.JobView) int {
	n := 0
	for _, j := range jobs {
		if !j.State.Final() {
			n++
		}
	}
	return n
}

func belongs(cluster string, todo int, peer string) error {
	e := &exitError{code: exitConflict, cause: task.ErrConflict}
	jobs := ""
	if todo > 0 {
		jobs = " (" + count(todo, "unfinished job") + ")"
	}
	if cluster == "" {
		e.detail = "this machine's own node has work to do" + jobs + "."
		e.hint = "wait for it: lanjobs ls · or put its data aside: lanjobs join " + peer + " --replace"
		return e
	}
	e.detail = fmt.Sprintf("this machine belongs to %q%s. lanjobs leave, or put its data aside: lanjobs join %s --replace", cluster, jobs, peer)
	return e
}

// untilMember waits until the cluster counts this machine in.
func (c *call) untilMember(ctx context.Context, v *task.ClusterView) (*task.ClusterView, error) {
	cl := c.clientHere()
	cl.slow = nil
	for start := c.clock.Awake(); ; {
		for _, n := range v.Nodes {
			if n.ID == v.Self && n.State == "ready" && v.Health != "no_leader" {
				return v, nil
			}
		}
		if c.clock.Awake()-start > joinPatience {
			return nil, &exitError{code: exitUnreachable, detail: fmt.Sprintf("admitted, but not counted in within %s.", joinPatience),
				hint: "The node goes on trying; lanjobs status shows how it stands.", cause: task.ErrNoLeader}
		}
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return nil, context.Cause(ctx)
		}
		fresh := &task.ClusterView{}
		if err := cl.get(ctx, "/v1/status", nil, fresh); err == nil {
			v = fresh
		} else if exitCode(err) != exitUnreachable {
			return nil, c.explainDoor(err)
		}
	}
}

// seatPatience is how long a machine that may vote waits to be given its part: the leader sees to that as soon as it has registered.
const seatPatience = 4 * time.Second

// untilSeated waits a moment until a machine that has joined has the part that it will have: it comes in as a worker, keeps a copy
// then, and votes if more voters are wanted.
func (c *call) untilSeated(ctx context.Context, v *task.ClusterView) *task.ClusterView {
	cl := c.clientHere()
	cl.slow = nil
	for start := c.clock.Awake(); c.clock.Awake()-start < seatPatience && !seated(v); {
		if wait(ctx, c.clock, 200*time.Millisecond) != nil {
			return v
		}
		fresh := &task.ClusterView{}
		if cl.get(ctx, "/v1/status", nil, fresh) == nil {
			v = fresh
		}
	}
	return v
}

// seated tells whether nothing more is to be waited for.
func seated(v *task.ClusterView) bool {
	for _, n := range v.Nodes {
		if n.ID == v.Self {
			return n.Role != "worker" && (n.Role != "standby" || v.Voters >= 3 || len(v.Nodes) < 3)
		}
	}
	return false
}

// joinedAs says as what this machine is in. plain: it was told to be a worker and stays one.
func joinedAs(v *task.ClusterView, name string, plain bool) string {
	for _, n := range v.Nodes {
		if n.ID != v.Self {
			continue
		}
		text := n.Name + ", " + n.Role
		switch {
		case n.Role == "worker" && !plain:
			text += " for now, may become a voter"
		case n.Role == "standby":
			text += ", may become a voter"
		}
		if v.Sentence != "" {
			text += " (" + v.Sentence + ")"
		}
		return text
	}
	return name
}
