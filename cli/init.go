package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

var defaultPort = strconv.Itoa(transport.DefaultPort)

// defaultCluster is the name of a cluster that was given none.
const defaultCluster = "home"

func initRow() *command {
	return &command{
		name: "init", short: "make this machine the first of a cluster", takes: takesNode | takesOutput,
		long: `Makes the cluster's certificate authority and opens one port, TCP and UDP. A node that runs "this machine only" keeps
its jobs. From now on machines may ask to join, and come in once somebody here has typed their code: lanjobs approve CODE`,
		flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "name", Usage: "call the cluster `NAME`", DefaultText: defaultCluster},
			&urfave.StringFlag{Name: "node-name", Usage: "call this machine `NAME` (its host name)"},
			&urfave.StringFlag{Name: "listen", Usage: "`ADDR[:PORT]` of the cluster port (all addresses, " + defaultPort + ")"},
			&urfave.BoolFlag{Name: "foreground", Usage: "stay here and be the node"},
		}, ruleFlags()...),
		run: runInit,
	}
}

func runInit(ctx context.Context, c *call) error {
	listen, err := listenAddress(c.path, c.flags.String("listen"))
	if err != nil {
		return err
	}
	if c.opt.cluster != "" && c.opt.cluster != c.getenv("LANJOBS_CLUSTER") {
		return usage(c.path, "--cluster names one that is there; the name of a new one: --name %s", c.opt.cluster)
	}
	name := orElse(c.flags.String("name"), defaultCluster)
	if name != node.CleanName(name) {
		return usage(c.path, "--name %q: use a-z, 0-9 and -, for example %q.", name, node.CleanName(name))
	}
	f := serveFlags{listen: listen, name: c.flags.String("node-name"), rules: c.rules()}
	cl, v, err := c.connectHere(ctx)
	switch {
	case err == nil && v.Name != "":
		return alreadyMember(v)
	case err == nil:
		return c.initRunning(ctx, cl, name, f)
	case !errors.Is(err, transport.ErrNoNode):
		return err
	}
	return c.initStopped(ctx, name, f)
}

func alreadyMember(v *task.ClusterView) error {
	return &exitError{code: exitConflict, detail: fmt.Sprintf("this machine is a member of %q already.", v.Name),
		hint: "lanjobs status shows it; lanjobs leave ends it.", cause: task.ErrConflict}
}

// initRunning turns the node that runs here into a member; its jobs stay.
func (c *call) initRunning(ctx context.Context, cl *client, name string, f serveFlags) error {
	if c.flags.Bool("foreground") {
		return usage(c.path, "a node runs here already, in the background: --foreground is for a fresh start.")
	}
	if f.name != "" {
		return usage(c.path, "the node here has its name already: --node-name is for a fresh start.")
	}
	if string(f.rules.Inhibit) == c.getenv("LANJOBS_INHIBIT") {
		f.rules.Inhibit = "" // nobody typed it
	}
	if args := ruleArgs(f.rules); len(args) > 0 {
		return usage(c.path, "the node here runs already: %s is for its start, as in lanjobs serve %s.", args[0], strings.Join(args, " "))
	}
	if f.listen == "" {
		f.listen = c.nodes.config().Listen
	}
	view := &transport.InitView{}
	if err := cl.post(ctx, "/v1/init", transport.InitBody{Cluster: name, Listen: f.listen}, view); err != nil {
		return c.explainDoor(err)
	}
	c.untilFirst(ctx, name)
	return c.saidInit(view, f.listen)
}

// untilFirst waits until the node here, which is built anew after an init, is the leader of its cluster: the next command must not meet
// the node of before. It gives up after a while: the cluster is made all the same.
func (c *call) untilFirst(ctx context.Context, cluster string) {
	cl := c.clientHere()
	cl.slow = nil
	for start := c.clock.Awake(); c.clock.Awake()-start < startPatience; {
		v := &task.ClusterView{}
		if cl.try(ctx, request{method: "GET", path: "/v1/status"}, v) == nil && v.Name == cluster && v.Leader != "" {
			return
		}
		if wait(ctx, c.clock, startPoll) != nil {
			return
		}
	}
}

// initStopped makes the cluster on disk, of nothing or of the node that was here, then starts its node.
func (c *call) initStopped(ctx context.Context, name string, f serveFlags) error {
	cfg, err := c.nodeConfig(f)
	if err != nil {
		return err
	}
	view, err := c.nodes.create(cfg, name)
	if err != nil {
		return err
	}
	if c.flags.Bool("foreground") {
		if err := c.saidInit(view, cfg.Listen); err != nil {
			return err
		}
		return c.serve(ctx, cfg)
	}
	v, err := c.startNode(ctx, f)
	if err != nil {
		return err
	}
	if err := c.saidInit(view, cfg.Listen); err != nil {
		return err
	}
	c.saidStarted(v)
	return nil
}

// saidInit prints the cluster, its fingerprint and the way in for the next machine.
func (c *call) saidInit(v *transport.InitView, listen string) error {
	return c.done(v, []string{v.Cluster}, `Cluster "%s" is ready on %s (TCP and UDP port %s).  CA SHA256 %s
On another machine: lanjobs join %s`, v.Cluster, v.Node, portOf(listen), v.Fingerprint, joinWord(v))
}

// joinWord is what the next machine may call this one: an address that works without name service, else its name, which join
// looks for on the local network.
func joinWord(v *transport.InitView) string {
	if len(v.Addresses) == 0 {
		return v.Node
	}
	if a, err := netip.ParseAddrPort(v.Addresses[0]); err == nil && a.Port() == transport.DefaultPort {
		return a.Addr().String()
	}
	return v.Addresses[0]
}

// listenAddress reads ADDR, ADDR:PORT, :PORT or PORT; "" stays, for what is set already or the default.
func listenAddress(path, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	host, port := s, defaultPort
	if n, err := strconv.Atoi(s); err == nil {
		host, port = "", strconv.Itoa(n)
	} else if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); host != "" && err != nil {
		return "", usage(path, "--listen %q: write an IP address of this machine, ADDR:PORT or :PORT.", s)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", usage(path, "--listen %q: the port is a number from 1 to 65535.", s)
	}
	return net.JoinHostPort(orElse(host, "::"), port), nil
}
