package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/task"
	"lanjobs/transport"
)

func joinRow() *command {
	return &command{
		name: "join", operands: "PEER", min: 1, max: 1, short: "make this machine a member of PEER's cluster",
		takes: takesNode | takesOutput,
		long: `PEER is any member: a host name or an address, with :PORT if it is not the usual one. The token comes from
"lanjobs token create" on a member. --token shows it in the list of processes of this machine; --token-file does not.`,
		flags: []urfave.Flag{
			&urfave.StringFlag{Name: "token-file", Usage: "read the token from `FILE`, - = standard input"},
			&urfave.StringFlag{Name: "token", Usage: "the `TOKEN` itself"},
			&urfave.StringFlag{Name: "node-name", Usage: "call this machine `NAME` (its host name)"},
			&urfave.StringFlag{Name: "listen", Usage: "`ADDR[:PORT]` of the cluster port here"},
			&urfave.BoolFlag{Name: "worker", Usage: "run jobs only, never vote"},
			&urfave.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` of this machine"},
			inhibitFlag(),
			&urfave.BoolFlag{Name: "foreground", Usage: "stay here and be the node"},
			&urfave.BoolFlag{Name: "replace", Usage: "put the data of the node here aside, even of another cluster"},
		},
		run: runJoin,
	}
}

// joinPatience is how long a joined node may take until the cluster counts it in.
const joinPatience = 60 * time.Second

func runJoin(ctx context.Context, c *call) error {
	peer, err := peerAddress(c.path, c.args[0])
	if err != nil {
		return err
	}
	listen, err := listenAddress(c.path, c.flags.String("listen"))
	if err != nil {
		return err
	}
	token, err := c.readToken()
	if err != nil {
		return err
	}
	if token == "" {
		return noToken(c.path, c.args[0])
	}
	f := serveFlags{listen: listen, name: c.flags.String("node-name"), labels: c.flags.StringSlice("label"), inhibit: c.flags.String("inhibit")}
	cfg, err := c.nodeConfig(f)
	if err != nil {
		return err
	}
	if err := c.makeRoom(ctx, c.args[0]); err != nil {
		return err
	}
	cluster, err := c.nodes.join(ctx, cfg, peer, token, c.flags.Bool("worker"))
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
	if err := c.done(v, []string{cluster}, "✓ joined \"%s\" as %s", cluster, joinedAs(v, cfg.Name)); err != nil {
		return err
	}
	c.saidStarted(v)
	return nil
}

// peerAddress adds the usual port.
func peerAddress(path, s string) (string, error) {
	if host, port, err := net.SplitHostPort(s); err == nil && host != "" {
		if n, err := strconv.Atoi(port); err == nil && n > 0 && n < 1<<16 {
			return s, nil
		}
	}
	if strings.Contains(s, "/") || net.ParseIP(strings.Trim(s, "[]")) == nil && strings.Contains(s, ":") {
		return "", usage(path, "%q: write a host name or an address, with :PORT if it is not %s.", s, defaultPort)
	}
	return net.JoinHostPort(strings.Trim(s, "[]"), defaultPort), nil
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
		line, _ := bufio.NewReader(c.stdin).ReadString('\n')
		token = line
	case file != "":
		text, err := os.ReadFile(c.inDir(file))
		if err != nil {
			return "", usage(c.path, "%v", err)
		}
		token = string(text)
	}
	return strings.TrimSpace(token), nil
}

func noToken(path, peer string) error {
	return notBuilt(path, "pairing by a code", fmt.Sprintf(`Use a token. On any member type: lanjobs token create
Then here: lanjobs join %s --token-file -      and paste the token`, peer))
}

// makeRoom sees to it that no node is in the way. The data of one that does not run is put aside by the join itself, after
// it was let in.
func (c *call) makeRoom(ctx context.Context, peer string) error {
	replace := c.flags.Bool("replace")
	cl, v, err := c.connect(ctx)
	if errors.Is(err, transport.ErrNoNode) {
		cluster, exists := nodeHere(c.dataDir())
		switch {
		case !exists || replace:
			return nil
		case cluster != "":
			return belongs(cluster, 0, peer)
		}
		return &exitError{code: exitConflict, detail: fmt.Sprintf("a node that does not run has its data in %s.", c.dataDir()),
			hint: fmt.Sprintf("start it: lanjobs serve · or put its data aside: lanjobs join %s --replace", peer), cause: task.ErrConflict}
	}
	if err != nil {
		return err
	}
	todo := unfinished(v.Jobs)
	if !replace && (v.Name != "" || todo > 0) {
		return belongs(v.Name, todo, peer)
	}
	c.say("The node here leaves %s; its data is put aside.", clusterName(v.Name))
	return c.leave(ctx, cl, replace)
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
	cl := c.client()
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

func joinedAs(v *task.ClusterView, name string) string {
	for _, n := range v.Nodes {
		if n.ID == v.Self {
			text := n.Name + ", " + n.Role
			if v.Sentence != "" {
				text += " (" + v.Sentence + ")"
			}
			return text
		}
	}
	return name
}
