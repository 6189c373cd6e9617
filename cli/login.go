package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"
	"unicode"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

var roles = []string{"viewer", "operator", "admin"}

func loginRow() *command {
	return &command{
		name: "login", operands: "[PEER]", max: 1, short: "use a cluster from here without being one of its machines",
		takes: takesNode | takesOutput,
		long: `PEER is any member: a host name or an address, with :PORT if it is not the usual one. A code is shown, which somebody types on
a member: lanjobs approve CODE. A token of "lanjobs token create --role operator" does without. Viewers read, operators also submit
and act on jobs, schedules, queues and drains, admins do everything. A key is made on this machine and kept in your folder of
settings, one folder for each cluster. From then on commands go to that cluster wherever no node runs here. Without PEER it lists
your logins. --grant, by the owner of the node here or with sudo, gives another user of this machine a login.`,
		flags: []urfave.Flag{
			&urfave.StringFlag{Name: "token-file", Usage: "read the token from `FILE`, - = standard input"},
			&urfave.StringFlag{Name: "token", Usage: "the `TOKEN` itself; it shows in the list of processes"},
			&urfave.StringFlag{Name: "role", Usage: "ask to be a `ROLE`: viewer, operator, admin (viewer; with a token: what it gives)"},
			&urfave.StringFlag{Name: "grant", Usage: "for local `USER`, by the node here: no token is needed"},
		},
		run: runLogin,
	}
}

func logoutRow() *command {
	return &command{
		name: "logout", short: "end a login: here and in the cluster", takes: takesNode,
		long: `The cluster forgets this access and the key here is deleted. With several logins --cluster says which.`,
		run:  runLogout,
	}
}

func runLogin(ctx context.Context, c *call) error {
	role := c.flags.String("role")
	if role != "" {
		if _, err := oneOf("--role", role, roles); err != nil {
			return usage(c.path, "%v", err)
		}
	}
	if len(c.args) == 0 {
		if c.flags.String("grant") != "" {
			return usage(c.path, "PEER is missing: lanjobs login localhost --grant %s", c.flags.String("grant"))
		}
		return c.listLogins()
	}
	peer, err := peerAddress(c.path, c.args[0])
	if err != nil {
		return err
	}
	if name := c.opt.cluster; name != "" && name != node.CleanName(name) {
		return usage(c.path, "--cluster %q: use a-z, 0-9 and -, for example %q.", name, node.CleanName(name))
	}
	if user := c.flags.String("grant"); user != "" {
		return c.grant(ctx, user, orElse(role, "operator"))
	}
	token, err := c.readToken()
	if err != nil {
		return err
	}
	if token == "" {
		return c.loginByCode(ctx, peer, orElse(role, "viewer"))
	}
	a, err := c.loginByToken(ctx, peer, token, c.user, role)
	if err != nil {
		return err
	}
	return c.keepLogin(ctx, a)
}

// loginByToken makes a key here and gets its certificate.
func (c *call) loginByToken(ctx context.Context, peer, token, user, role string) (*transport.Access, error) {
	return c.logIn(ctx, c.loginConfig(peer, token, user, role))
}

func (c *call) loginConfig(peer, token, user, role string) transport.LoginConfig {
	return transport.LoginConfig{Peer: peer, Token: token, Name: clientName(user), Role: role, Net: transport.DialTCP, Clock: c.clock,
		HasRoute: func(a netip.AddrPort) bool { _, ok := transport.LocalToward(a); return ok }}
}

// clientName is how lists and the audit log call a client: anna@laptop.
func clientName(user string) string {
	host, _ := os.Hostname()
	user = strings.Map(func(r rune) rune { // as in "PC\\Anna Smith"
		if unicode.IsPrint(r) && r != ' ' && r != unicode.ReplacementChar {
			return r
		}
		return '-'
	}, user)
	name := orElse(user, "somebody") + "@" + node.CleanName(host)
	return strings.ToValidUTF8(name[:min(len(name), transport.MaxClientName)], "")
}

// keepLogin stores an access as this person's, in the place of an earlier one to the same cluster.
func (c *call) keepLogin(ctx context.Context, a *transport.Access) error {
	book, err := c.logins(true)
	if err == nil && book == nil {
		err = errors.New("there is no folder of settings")
	}
	if err != nil {
		return fmt.Errorf("keep the login: %w", err)
	}
	defer book.close()
	want := orElse(c.opt.cluster, a.ClusterName)
	if book.clusterOf(want) == a.ClusterID { // the earlier access is of no use any more
		if old, err := transport.LoadAccess(book.folder(want)); err == nil && old.ID != a.ID {
			c.giveUp(ctx, old)
		}
	}
	name, err := book.keep(a, want)
	if err != nil {
		return err
	}
	view := transport.WhoView{By: a.Name, Role: a.Role, Client: a.ID, Cluster: a.ClusterName}
	if err := c.done(view, []string{name}, "✓ logged in to \"%s\" as %s, %s", a.ClusterName, a.Name, a.Role); err != nil {
		return err
	}
	if name != want {
		c.say("You have a login to another cluster called %q: this one is --cluster %s", want, name)
	}
	if cluster, exists := nodeHere(c.dataDir()); exists {
		c.say("A node of %s is here, and commands go to it while it runs; to this login with: --cluster %s", clusterName(cluster), name)
	} else {
		c.say("See it: lanjobs status      End it: lanjobs logout")
	}
	return nil
}

// listLogins shows this person's logins; nobody is asked.
func (c *call) listLogins() error {
	type view struct {
		Name    string   `json:"name"` // for --cluster
		Cluster string   `json:"cluster"`
		Client  string   `json:"client"`
		Role    string   `json:"role"`
		As      string   `json:"as"`
		Addrs   []string `json:"addresses"`
	}
	views := []view{}
	a := answer{table: table{head: []string{"NAME", "CLUSTER", "AS", "ROLE", "CLIENT", "ADDRESSES"}}}
	book, err := c.logins(false)
	if err != nil {
		return err
	}
	if book != nil {
		defer book.close()
		for _, name := range book.names() {
			l, err := transport.LoadAccess(book.folder(name))
			if err != nil {
				c.say("lanjobs: %v", err)
				continue
			}
			v := view{Name: name, Cluster: l.ClusterName, Client: l.ID, Role: l.Role, As: l.Name, Addrs: l.Addrs()}
			views = append(views, v)
			a.names = append(a.names, name)
			a.table.rows = append(a.table.rows, cells(name, v.Cluster, v.As, v.Role, v.Client, v.Addrs[0]))
		}
	}
	if len(views) == 0 {
		a.foot = []string{"No logins. To get one: lanjobs login MACHINE"}
	}
	a.value, a.items = list("LoginList", 0, views), anys(views)
	return c.show(a)
}

// logoutPatience is how long logout tries to tell the cluster.
const logoutPatience = 5 * time.Second

func runLogout(ctx context.Context, c *call) error {
	w := c.theWay()
	found, err := w.takeLogin(c.opt.cluster)
	if err != nil {
		return err
	}
	if !found {
		what := "you are not logged in to any cluster."
		if c.opt.cluster != "" {
			what = fmt.Sprintf("you have no login called %q.", c.opt.cluster)
		}
		return &exitError{code: exitNotFound, detail: what, hint: "Your logins: lanjobs login", cause: task.ErrNotFound}
	}
	told := c.giveUp(ctx, w.access)
	book, err := c.logins(false)
	if err != nil || book == nil {
		return fmt.Errorf("forget the login: %w", err)
	}
	defer book.close()
	name := baseName(w.folder)
	if err := book.forget(name); err != nil {
		return fmt.Errorf("forget the login: %w", err)
	}
	c.onWay = nil // it leads nowhere any more
	if told != nil {
		c.say("lanjobs: the cluster could not be told (%v).", task.Explain(told).Detail)
		c.say("%sThe key is deleted here; to end the access there too, an admin types: lanjobs client rm %s", indent, w.access.ID)
	}
	return c.done(nil, nil, "logged out of \"%s\"", w.access.ClusterName)
}

// giveUp has the cluster forget an access, which asks for that itself. One that is not known there any more is done with as well.
func (c *call) giveUp(ctx context.Context, a *transport.Access) error {
	door, err := c.access(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*logoutPatience) // a connection that hangs outlasts the patience
	defer cancel()
	cl := &client{door: door, clock: c.clock, whom: func() string { return fmt.Sprintf("%q", a.ClusterName) }}
	cl.known.Store(true) // the members cut the connections of a client that is removed, at times this answer with them: it is asked again
	err = cl.patiently(ctx, logoutPatience, request{method: http.MethodDelete, path: "/v1/clients/self", id: newRequestID()}, nil)
	if errors.Is(err, task.ErrNotAllowed) {
		return nil
	}
	return err
}
