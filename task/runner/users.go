package runner

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"

	"lanjobs/task"
)

// Attempts may run as another user than the node (R46): a task that runs as the node's own can open the node's admin socket and read
// its key. Only a node that runs as root can do so, and only for the users that its own command line names; a job cannot choose
// beyond those. What root does for such an attempt it does where that user could not have put anything before, or asks first
// whether that user might do it.

// taskUser is another user that an attempt runs as. The guard needs the numbers, the environment the rest.
type taskUser struct {
	Name   string   `json:"name"`
	Home   string   `json:"-"`
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"`
}

// owner is to whom a file that an attempt needs is given; the zero value = whoever the node runs as.
type owner struct {
	UID, GID int `json:",omitempty"`
}

func (u *taskUser) owner() owner {
	if u == nil {
		return owner{}
	}
	return owner{int(u.UID), int(u.GID)}
}

// give makes a file the owner's.
func (o owner) give(path string) error {
	if o == (owner{}) {
		return nil
	}
	return os.Lchown(path, o.UID, o.GID)
}

// lookupTaskUser reads a user from the machine's database; nil if that is who runs the node.
func lookupTaskUser(name string) (*taskUser, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("this machine has no user %q", name)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user %q: %w", name, err)
	}
	if int(uid) == os.Getuid() {
		return nil, nil
	}
	out := &taskUser{Name: u.Username, Home: u.HomeDir, UID: uint32(uid), GID: uint32(gid)}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of user %q: %w", name, err)
	}
	for _, g := range groups {
		if n, err := strconv.ParseUint(g, 10, 32); err == nil {
			out.Groups = append(out.Groups, uint32(n))
		}
	}
	return out, nil
}

// CheckUsers tells what keeps this node from running attempts as other users: runAs for those that ask for none ("" = the node's own),
// allowed for those that may be asked for. dir is the runner's folder. The error is a *task.Problem.
func CheckUsers(runAs string, allowed []string, dir string) error {
	for _, name := range append([]string{runAs}, allowed...) {
		if name == "" {
			continue
		}
		if !usersSupported {
			return task.NewProblem(task.ErrInvalid, "running tasks as another user is not supported on this system", "Run the node as that user instead.")
		}
		u, err := lookupTaskUser(name)
		switch {
		case err != nil:
			return task.NewProblem(task.ErrInvalid, err.Error(), "")
		case u == nil:
		case os.Getuid() != 0:
			return task.NewProblem(task.ErrNotAllowed, fmt.Sprintf("only a node that runs as root can run tasks as user %s", name), "sudo lanjobs serve …, or run the node as that user")
		default:
			if barred := u.barredAt(dir); barred != "" {
				return task.NewProblem(task.ErrInvalid, fmt.Sprintf("user %s may not enter %s, so its tasks could not reach their working directories in %s", name, barred, dir),
					"Keep this node's data where others may pass through, for example: --data-dir /var/lib/lanjobs")
			}
		}
	}
	return nil
}

// switches tells whether attempts may run as other users here.
func (r *Runner) switches() bool { return r.cfg.RunAs != "" || len(r.cfg.AllowUsers) > 0 }

// userFor is the other user that an attempt of a stage runs as, nil = the node's own. One that this machine does not allow is a
// need that is unmet: the attempt is given back.
func (r *Runner) userFor(stage *task.StageSpec) (*taskUser, error) {
	name := stage.User
	if name == "" {
		name = r.cfg.RunAs
	}
	if name == "" {
		return nil, nil
	}
	if name != r.cfg.RunAs && !slices.Contains(r.cfg.AllowUsers, name) {
		return nil, unmet("user %s: %s does not run tasks as that user (serve --allow-user %s)", name, r.cfg.NodeName, name)
	}
	u, err := lookupTaskUser(name)
	if err != nil {
		return nil, unmet("user %s: %v", name, err)
	}
	return u, nil
}

// baseFor is part 1 of the environment for a user: what of it is about whoever runs the node is exchanged.
func (r *Runner) baseFor(u *taskUser) []task.KV {
	if u == nil {
		return r.base
	}
	own := map[string]string{"HOME": u.Home, "USER": u.Name, "LOGNAME": u.Name, "SHELL": "/bin/sh", "TMPDIR": "/tmp"}
	out := slices.Clone(r.base)
	for i := range out {
		if value, ok := own[out[i].Name]; ok {
			out[i].Value = value
			delete(own, out[i].Name)
		}
	}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"} {
		if value, left := own[name]; left {
			out = append(out, task.KV{Name: name, Value: value})
		}
	}
	return out
}

// mayHave refuses what root would do for an attempt that its user might not do: read a file of variables, or write the job's files into a
// directory that is not the attempt's own.
func (u *taskUser) mayHave(stage *task.StageSpec, files int) error {
	if u == nil {
		return nil
	}
	for _, path := range stage.EnvFiles {
		if !u.mayRead(path) {
			return cannotStart(126, "env file %s: user %s may not read it", path, u.Name)
		}
	}
	if files > 0 && stage.Workdir != "" {
		return cannotStart(126, "files of the job are put into its private directory only where it runs as another user (%s): leave out workdir", u.Name)
	}
	return nil
}

// hand gives an attempt's places to its user. Nothing of that user has run in them yet. The output file must exist: the folder that it
// lies in stays root's, so that nothing can take its place.
func (u *taskUser) hand(p paths, script string) error {
	if u == nil {
		return nil
	}
	o := u.owner()
	out, err := os.OpenFile(p.output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(o.give(p.output), out.Close())
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	for _, path := range []string{script, p.checkpoint} {
		if err := o.give(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return o.giveTree(p.dir)
}
