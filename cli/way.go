package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// way is how the commands of one call reach a cluster: the node here, or where none runs (or it is somebody else's) the cluster that
// this person has logged in to. The first request decides; a node that has answered is not exchanged for a login when it goes away.
type way struct {
	c     *call
	here  http.RoundTripper
	given bool // --data-dir names the node that is meant

	mu     sync.Mutex
	chosen http.RoundTripper
	access *transport.Access // set with chosen, if that is a login
	folder string            // of the login
}

// theWay is made once per call, so that all its requests go the same way.
func (c *call) theWay() *way {
	if c.onWay == nil {
		c.onWay = &way{c: c, here: c.door(transport.SocketPath(c.dataDir())), given: c.opt.dataDir != ""}
	}
	return c.onWay
}

// RoundTrip asks the node here, or the cluster of a login.
func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if door := w.door(); door != nil {
		return door.RoundTrip(r)
	}
	resp, err := w.here.RoundTrip(r)
	if err == nil {
		w.mu.Lock()
		w.chosen = w.here
		w.mu.Unlock()
		return resp, nil
	}
	if theirs := errors.Is(err, transport.ErrSocketPermission); !theirs && (w.given || !errors.Is(err, transport.ErrNoNode)) {
		return nil, err
	}
	found, failed := w.takeLogin(w.c.opt.cluster)
	if failed != nil {
		return nil, failed
	}
	if !found {
		return nil, err
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return w.door().RoundTrip(again)
}

func (w *way) door() http.RoundTripper {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chosen
}

// login is the access that is used, nil if it is the node here.
func (w *way) login() *transport.Access {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.access
}

// whom is whom this way leads to, for people.
func (w *way) whom() string {
	if a := w.login(); a != nil {
		return fmt.Sprintf("%q", a.ClusterName)
	}
	return "the node here"
}

// takeLogin goes by a login from now on: the one of a name, or for "" the only one. false = there is none.
func (w *way) takeLogin(name string) (bool, error) {
	book, err := w.c.logins(false)
	if book == nil || err != nil {
		return false, err
	}
	defer book.close()
	names := book.names()
	switch {
	case name == "" && len(names) == 1:
		name = names[0]
	case name == "" && len(names) > 1:
		return false, &exitError{code: exitUsage, detail: "you are logged in to " + andList(names) + ": say which is meant.",
			hint: fmt.Sprintf("--cluster %s, or for this shell: export LANJOBS_CLUSTER=%s", names[0], names[0])}
	case !slices.Contains(names, name):
		return false, nil
	}
	a, err := transport.LoadAccess(book.folder(name))
	if err != nil {
		return false, &exitError{code: exitNotAllowed, detail: err.Error() + ".", hint: "Log in again: lanjobs login MACHINE", cause: err}
	}
	door, err := w.c.access(a)
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chosen, w.access, w.folder = door, a, book.folder(name)
	return true, nil
}

// logins are those of this person; nil if there are none and none may be made.
func (c *call) logins(make bool) (*loginBook, error) {
	if c.configDir == nil {
		return nil, nil
	}
	dir, err := c.configDir()
	if err != nil {
		return nil, nil // no home folder: no logins
	}
	return openLogins(dir, make)
}

// membersFresh is how old the list of members may be before a command that has worked anyway renews it, and membersPatience how
// long that may take.
const (
	membersFresh    = time.Hour
	membersPatience = 2 * time.Second
)

// rememberMembers renews the list of where the cluster is, if a login was used and the list is old.
func (c *call) rememberMembers(ctx context.Context) {
	if c.onWay == nil || c.onWay.login() == nil || ctx.Err() != nil {
		return
	}
	info, err := os.Stat(filepath.Join(c.onWay.folder, transport.MembersFile))
	if err == nil && c.clock.Wall().Sub(info.ModTime()).Abs() < membersFresh {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, membersPatience)
	defer cancel()
	v := &task.ClusterView{}
	if c.client().try(ctx, request{method: http.MethodGet, path: "/v1/status", query: nil}, v) == nil {
		c.noteMembers(v)
	}
}

// noteMembers takes over where the cluster is. It is a help for the next time: that it cannot be kept is no fault of this command.
func (c *call) noteMembers(v *task.ClusterView) {
	if c.onWay == nil || v.StaleSeconds > 0 {
		return
	}
	a := c.onWay.login()
	if a == nil {
		return
	}
	var now []transport.Member
	for _, n := range v.Nodes {
		if len(n.Addresses) > 0 && n.State != "left" {
			now = append(now, transport.Member{ID: n.ID, Name: n.Name, Addrs: n.Addresses})
		}
	}
	if len(now) == 0 {
		return
	}
	a.Members = now
	_ = a.SaveMembers(c.onWay.folder)
}

func andList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, " and ")
}
