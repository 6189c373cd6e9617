package transport_test

import (
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"lanjobs/task"
	"lanjobs/transport"
)

func TestIdentityIsKept(t *testing.T) {
	t.Setenv("LANJOBS_MACHINE_ID", "here")
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := transport.LoadIdentity(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no node yet: %v", err)
	}
	i, err := transport.NewIdentity("mini-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Save(dir); err != nil {
		t.Fatal(err)
	}
	alone, err := transport.LoadIdentity(dir)
	if err != nil || alone.NodeID != i.NodeID || alone.Name != "mini-1" || alone.Member() {
		t.Fatalf("before a cluster: %+v, %v", alone, err)
	}
	if u, err := uuid.Parse(string(i.NodeID)); err != nil || u.Version() != 4 {
		t.Errorf("node id %s", i.NodeID)
	}

	l := newLAN(t, "home")
	csr, err := alone.CSR()
	if err != nil {
		t.Fatal(err)
	}
	cert, err := l.ca.Issue(csr, alone.NodeID)
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Adopt(l.info, cert); err != nil {
		t.Fatal(err)
	}
	if err := alone.Save(dir); err != nil {
		t.Fatal(err)
	}
	member, err := transport.LoadIdentity(dir)
	if err != nil || !member.Member() || member.Cluster.ID != l.info.ID || member.Cluster.Name != "home" || member.Cluster.Generation != 1 ||
		len(member.Cluster.GossipKey) != 32 || member.Cluster.CACert != l.info.CACert {
		t.Fatalf("as a member: %+v, %v", member, err)
	}
	l.stationOf(t, member, nil) // the key fits the certificate

	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("files left: %v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestCopiedFolderIsRefused(t *testing.T) {
	t.Setenv("LANJOBS_MACHINE_ID", "here")
	dir := t.TempDir()
	i, err := transport.NewIdentity("mini-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Save(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LANJOBS_MACHINE_ID", "there")
	_, err = transport.LoadIdentity(dir)
	p, ok := errors.AsType[*task.Problem](err)
	if !ok || !errors.Is(err, task.ErrConflict) || !strings.HasPrefix(p.Detail, "this data folder was copied from another machine") {
		t.Errorf("copied folder: %v", err)
	}
	if text := readFile(t, dir, "identity.json"); strings.Contains(text, "here") {
		t.Errorf("the machine's own id is in the file: %s", text)
	}
	t.Setenv("LANJOBS_MACHINE_ID", "here")
	if _, err := transport.LoadIdentity(dir); err != nil {
		t.Errorf("control: where it was made: %v", err)
	}
}

// Where the cluster is one machine, nobody else could notice that it runs twice.
func TestACopyBesideItsOriginalIsRefused(t *testing.T) {
	place := t.TempDir()
	data, other := filepath.Join(place, "data"), filepath.Join(place, "other")
	i, err := transport.NewIdentity("mini-1")
	if err == nil {
		err = i.Save(data)
	}
	if err == nil {
		err = os.CopyFS(other, os.DirFS(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	loads := func(dir string) (inPlace bool, err error) {
		i, err := transport.LoadIdentity(dir)
		return err == nil && i.InPlace(dir), err
	}
	if _, err := loads(other); !errors.Is(err, task.ErrConflict) || !strings.Contains(err.Error(), "this data folder is a copy") {
		t.Errorf("a copy: %v", err)
	}
	if in, err := loads(data); err != nil || !in {
		t.Errorf("the original: %v, in its place: %v", err, in)
	}
	link := filepath.Join(place, "link")
	if err := os.Symlink(data, link); err == nil { // not everybody may on Windows
		if in, err := loads(link); err != nil || !in {
			t.Errorf("through a link: %v, in its place: %v", err, in)
		}
	}

	// The original is gone: what was the copy is the node now. Until it is saved there it counts as moved.
	if err := os.Rename(data, filepath.Join(place, "old")); err != nil {
		t.Fatal(err)
	}
	if in, err := loads(other); err != nil || in {
		t.Fatalf("a moved folder: %v, in its place: %v", err, in)
	}
	if i, err = transport.LoadIdentity(other); err == nil {
		err = i.Save(other)
	}
	if err != nil {
		t.Fatal(err)
	}
	if in, err := loads(other); err != nil || !in {
		t.Errorf("a moved folder, saved: %v, in its place: %v", err, in)
	}
}

func TestMachineFingerprintIsSteady(t *testing.T) {
	t.Setenv("LANJOBS_MACHINE_ID", "")
	if a, b := transport.MachineFingerprint(), transport.MachineFingerprint(); a != b {
		t.Errorf("%q, then %q", a, b)
	}
	t.Setenv("LANJOBS_MACHINE_ID", "x")
	x := transport.MachineFingerprint()
	t.Setenv("LANJOBS_MACHINE_ID", "y")
	if y := transport.MachineFingerprint(); x == y || len(x) != 32 {
		t.Errorf("%q and %q", x, y)
	}
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDamagedIdentityIsNotTaken(t *testing.T) {
	l := newLAN(t, "home")
	other := l.member(t, "other")
	for name, damage := range map[string]func(t *testing.T, dir string){
		"empty file":         func(t *testing.T, dir string) { put(t, dir, "identity.json", "") },
		"half a file":        func(t *testing.T, dir string) { put(t, dir, "identity.json", readFile(t, dir, "identity.json")[:100]) },
		"no node":            func(t *testing.T, dir string) { put(t, dir, "identity.json", `{"node_id":""}`) },
		"no key":             func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "node.key")) },
		"empty key":          func(t *testing.T, dir string) { put(t, dir, "node.key", "") },
		"another node's key": func(t *testing.T, dir string) { moveKey(t, other, dir) },
	} {
		dir := t.TempDir()
		if err := l.member(t, "a").Save(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := transport.LoadIdentity(dir); err != nil {
			t.Fatalf("control: %v", err)
		}
		damage(t, dir)
		if i, err := transport.LoadIdentity(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func moveKey(t *testing.T, from *transport.Identity, dir string) {
	t.Helper()
	there := t.TempDir()
	if err := from.Save(there); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "node.key", readFile(t, there, "node.key"))
}

func TestWriteFileLeavesOldOrNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"old", "new"} {
		if err := transport.WriteFile(path, []byte(text)); err != nil || readFile(t, dir, "f") != text {
			t.Fatalf("%s: %v", text, err)
		}
	}
	blocked := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := transport.WriteFile(blocked, []byte("new")); err == nil {
		t.Error("a folder was replaced")
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("left behind: %v", files)
	}
}

func TestAuthorityIsKept(t *testing.T) {
	l := newLAN(t, "home")
	dir := t.TempDir()
	if _, err := transport.LoadCA(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no authority yet: %v", err)
	}
	if err := l.ca.Save(dir); err != nil {
		t.Fatal(err)
	}
	ca, err := transport.LoadCA(dir)
	if err != nil || ca.Fingerprint() != l.ca.Fingerprint() || ca.Cluster() != l.info.ID {
		t.Fatalf("%v, %v", ca, err)
	}
	issue(t, l.info, ca, "a")

	text, err := l.ca.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	cert, key := pem.Decode(text)
	foreign, err := newLAN(t, "x").ca.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	_, foreignKey := pem.Decode(foreign)
	node := l.member(t, "a")
	for name, bad := range map[string]string{
		"nothing": "", "no key": string(pem.EncodeToMemory(cert)), "no certificate": string(key),
		"another's key": string(pem.EncodeToMemory(cert)) + string(foreignKey), "a node": node.Cert + string(key),
	} {
		if _, err := transport.ParseCA([]byte(bad)); err == nil {
			t.Errorf("%s was taken for an authority", name)
		}
	}
}

func TestFingerprintIsReadable(t *testing.T) {
	l := newLAN(t, "home")
	f, err := l.info.Fingerprint()
	if err != nil || f != l.ca.Fingerprint() {
		t.Fatal(f, err)
	}
	groups := strings.Split(f.String(), "-")
	if len(groups) != 16 || f.String() != strings.ToUpper(f.String()) || len(f.String()) != 79 {
		t.Errorf("fingerprint %s", f)
	}
	if want := groups[0] + "-" + groups[1] + "-…-" + groups[15]; f.Short() != want {
		t.Errorf("short %s, want %s", f.Short(), want)
	}
}

// A machine that lost its log takes a new identity in the place of its old one. Whatever moment the power goes, it is one of the two.
func TestIdentityThatReplacesAnother(t *testing.T) {
	t.Setenv("LANJOBS_MACHINE_ID", "here")
	l := newLAN(t, "home")
	member := func(dir string) *transport.Identity {
		t.Helper()
		i, err := transport.NewIdentity("mini-1")
		if err != nil {
			t.Fatal(err)
		}
		csr, err := i.CSR()
		if err != nil {
			t.Fatal(err)
		}
		cert, err := l.ca.Issue(csr, i.NodeID)
		if err == nil {
			err = i.Adopt(l.info, cert)
		}
		if err == nil {
			err = i.Save(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	dir := t.TempDir()
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	old := member(dir)
	oldIdentity, oldKey := read("identity.json"), read("node.key")
	blocked := filepath.Join(dir, "identity.json")
	if err := errors.Join(os.Remove(blocked), os.MkdirAll(filepath.Join(blocked, "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if other, err := transport.NewIdentity("mini-1"); err != nil || other.Save(dir) == nil || string(read("node.key")) != string(oldKey) {
		t.Errorf("the old key went before the new identity came: %v", err)
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	next := member(dir)
	nextIdentity, nextKey := read("identity.json"), read("node.key")
	for name, c := range map[string]struct {
		identity, key, next []byte
		want                task.NodeID
	}{
		"before":              {oldIdentity, oldKey, nil, old.NodeID},
		"the key is written":  {oldIdentity, oldKey, nextKey, old.NodeID},
		"so is the identity":  {nextIdentity, oldKey, nextKey, next.NodeID},
		"the key took effect": {nextIdentity, nextKey, nil, next.NodeID},
	} {
		for file, data := range map[string][]byte{"identity.json": c.identity, "node.key": c.key, "node.key.next": c.next} {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if i, err := transport.LoadIdentity(dir); err != nil || i.NodeID != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
