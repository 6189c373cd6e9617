package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"lanjobs/node"
	"lanjobs/transport"
)

// loginBook is the logins of one person on this machine: a folder for each cluster, with a key in it that only that person can read.
// It may be somebody else's, for login --grant: what is made belongs to that person, and nothing is followed out of the home folder,
// whatever links lie there, since it is root who writes.
type loginBook struct {
	root     *os.Root
	dir      string // of the logins, within root, with slashes
	at       string // the same as an absolute path
	uid, gid int    // of what is made; -1 = whoever asks
}

// loginsIn is where logins lie in a person's folder of settings.
const loginsIn = "lanjobs/logins"

// openLogins opens the logins in a folder of settings, which is made if there is none yet and make says so. nil = there is none.
func openLogins(configDir string, make bool) (*loginBook, error) {
	if make {
		if err := os.MkdirAll(configDir, 0o700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(configDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &loginBook{root: root, dir: loginsIn, at: filepath.Join(configDir, filepath.FromSlash(loginsIn)), uid: -1, gid: -1}, nil
}

func (b *loginBook) close() { _ = b.root.Close() }

// names are the logins there are, by the name that --cluster takes.
func (b *loginBook) names() []string {
	f, err := b.root.Open(b.dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if _, err := b.root.Stat(path.Join(b.dir, e.Name(), transport.AccessFile)); err == nil {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}

// folder is where a login lies, for whoever reads it as its owner.
func (b *loginBook) folder(name string) string { return filepath.Join(b.at, name) }

// clusterOf is the id of the cluster that a login is for, "" if there is no such login.
func (b *loginBook) clusterOf(name string) string {
	text, err := b.root.ReadFile(path.Join(b.dir, name, transport.AccessFile))
	if err != nil {
		return ""
	}
	var a transport.Access
	if json.Unmarshal(text, &a) != nil {
		return "damaged"
	}
	return a.ClusterID
}

// keep stores an access under a name, or where that is another cluster's under the next free one, and gives the name.
func (b *loginBook) keep(a *transport.Access, name string) (string, error) {
	if name == "" || name != node.CleanName(name) { // the cluster says it, and it becomes a path
		return name, fmt.Errorf("keep the login: %q is no name of a cluster", name)
	}
	for n, base := 2, name; ; n++ {
		if have := b.clusterOf(name); have == "" || have == a.ClusterID {
			break
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	names, texts, err := a.Text()
	if err != nil {
		return name, err
	}
	dir := path.Join(b.dir, name)
	if err := b.mkdir(dir); err != nil {
		return name, fmt.Errorf("keep the login: %w", err)
	}
	for i := range names {
		if err := b.write(path.Join(dir, names[i]), texts[i]); err != nil {
			return name, fmt.Errorf("keep the login: %w", err)
		}
	}
	return name, nil
}

// mkdir makes a folder and those above it.
func (b *loginBook) mkdir(dir string) error {
	if dir == "." {
		return nil
	}
	if err := b.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	err := b.root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && b.uid >= 0 {
		err = b.root.Lchown(dir, b.uid, b.gid)
	}
	return err
}

// write replaces a file that only its owner may read, in one step.
func (b *loginBook) write(name string, text []byte) error {
	next := name + ".new"
	if err := b.root.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := b.root.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if b.uid >= 0 {
		err = f.Chown(b.uid, b.gid)
	}
	if err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = b.root.Rename(next, name)
	}
	return err
}

// forget removes a login, its key first.
func (b *loginBook) forget(name string) error {
	dir := path.Join(b.dir, name)
	return errors.Join(b.root.Remove(path.Join(dir, transport.AccessFile)), b.root.RemoveAll(dir))
}
