package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"lanjobs/task"
	"lanjobs/transport"
)

// grantTTL is how long the token lives that a grant makes and uses at once.
const grantTTL = 60

// grant gives another user of this machine a login, by the node here: its owner lets that user in.
func (c *call) grant(ctx context.Context, name, role string) error {
	if c.goos == "windows" {
		return usage(c.path, "--grant is not supported on Windows. As that user: lanjobs login localhost --token-file -")
	}
	if c.flags.String("token") != "" || c.flags.String("token-file") != "" {
		return usage(c.path, "--grant makes its own token.")
	}
	host, _, _ := net.SplitHostPort(mustPeer(c.args[0]))
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usage(c.path, "--grant is about the node of this machine: lanjobs login localhost --grant %s", name)
	}
	who, err := user.Lookup(name)
	if err != nil {
		return &exitError{code: exitNotFound, detail: fmt.Sprintf("this machine has no user %q.", name), cause: err}
	}
	book, err := loginsOf(who, c.goos)
	if err != nil {
		return err
	}
	defer book.close()
	cl, v, err := c.connectHere(ctx)
	if err != nil {
		return err
	}
	if v.Name == "" {
		return &exitError{code: exitConflict, detail: "the node here is no cluster yet, and has no port that others could use.",
			hint: "Make one of it: lanjobs init --listen 127.0.0.1    (then it is open to this machine only)"}
	}
	t := &transport.TokenView{}
	if err := cl.post(ctx, "/v1/tokens", transport.TokenBody{Role: role, TTLSeconds: grantTTL, Uses: 1}, t); err != nil {
		return err
	}
	a, err := c.loginSomewhere(ctx, ownAddrs(v), t.Token, name)
	if err != nil {
		return err
	}
	kept, err := book.keep(a, a.ClusterName)
	if err != nil {
		_ = cl.delete(ctx, "/v1/clients/"+a.ID, nil, nil) // nobody has its key
		e := &exitError{code: exitBad, detail: fmt.Sprintf("%v (below %s).", err, who.HomeDir), cause: err}
		if errors.Is(err, fs.ErrPermission) {
			e.code, e.hint = exitNotAllowed, fmt.Sprintf("Only root may write for another user: sudo lanjobs login localhost --grant %s", name)
		}
		return e
	}
	return c.done(transport.WhoView{By: a.Name, Role: a.Role, Client: a.ID, Cluster: a.ClusterName}, []string{kept},
		"✓ %s may use \"%s\" as %s: its key is in %s", name, a.ClusterName, a.Role, book.folder(kept))
}

// mustPeer is an operand that peerAddress has let through before.
func mustPeer(s string) string {
	addr, err := peerAddress("", s)
	if err != nil {
		return s
	}
	return addr
}

// ownAddrs is where the node that answered listens.
func ownAddrs(v *task.ClusterView) []string {
	for _, n := range v.Nodes {
		if n.ID != v.Self {
			continue
		}
		out := slices.Clone(n.Addresses)
		for _, a := range n.Addresses { // one that listens on all addresses announces no loopback
			if _, port, err := net.SplitHostPort(a); err == nil {
				out = append(out, net.JoinHostPort("localhost", port))
				break
			}
		}
		return out
	}
	return nil
}

// loginSomewhere logs in at the first address that answers.
func (c *call) loginSomewhere(ctx context.Context, addrs []string, token, user string) (*transport.Access, error) {
	err := error(task.NewProblem(task.ErrNoLeader, "the node here does not say where it listens", ""))
	for _, addr := range addrs {
		var a *transport.Access
		if a, err = c.loginByToken(ctx, addr, token, user, ""); err == nil || !errors.Is(err, task.ErrNoLeader) {
			return a, err
		}
	}
	return nil, err
}

// loginsOf opens the logins of another user, below that user's home folder.
func loginsOf(u *user.User, goos string) (*loginBook, error) {
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if uid == os.Getuid() {
		uid, gid = -1, -1
	}
	root, err := os.OpenRoot(u.HomeDir)
	if err != nil {
		return nil, &exitError{code: exitNotAllowed, detail: fmt.Sprintf("the home folder of %s cannot be opened (%v).", u.Username, err),
			hint: fmt.Sprintf("sudo lanjobs login localhost --grant %s", u.Username), cause: err}
	}
	settings := ".config"
	if goos == "darwin" {
		settings = "Library/Application Support"
	}
	dir := path.Join(settings, loginsIn)
	return &loginBook{root: root, dir: dir, at: filepath.Join(u.HomeDir, filepath.FromSlash(dir)), uid: uid, gid: gid}, nil
}
