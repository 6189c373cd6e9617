//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lanjobs/cli/service"
	"lanjobs/transport"
)

// TestGrantedLoginBelongsToItsUser: what root makes in somebody's home folder belongs to that somebody, is closed to all others, and no
// link leads it anywhere else.
func TestGrantedLoginBelongsToItsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	a := newAfar(t, "home").admit(t, "ben@pc")
	keep := func(home string) (string, error) {
		b, err := loginsOf(&user.User{Username: "ben", Uid: nobody.Uid, Gid: nobody.Gid, HomeDir: home}, "linux")
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		name, err := b.keep(a, "home")
		return b.folder(name), err
	}
	home := t.TempDir()
	folder, err := keep(home)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(home, ".config/lanjobs/logins/home"); folder != want {
		t.Errorf("kept in %s", folder)
	}
	made := 0
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == home {
			return err
		}
		made++
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Sys().(*syscall.Stat_t).Uid != uint32(uid) || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, owner %d", path, info.Mode(), info.Sys().(*syscall.Stat_t).Uid)
		}
		return nil
	})
	if err != nil || made != 6 {
		t.Errorf("%d made, %v", made, err)
	}
	if back, err := transport.LoadAccess(folder); err != nil || back.ID != a.ID {
		t.Errorf("%+v, %v", back, err)
	}
	for _, link := range []string{".config", ".config/lanjobs", ".config/lanjobs/logins/home"} {
		home, elsewhere := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(elsewhere, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
		_, err := keep(home)
		entries, _ := os.ReadDir(elsewhere)
		if err == nil || !strings.Contains(err.Error(), "escapes") || len(entries) > 0 {
			t.Errorf("by the link %s: %v, made %v", link, err, entries)
		}
	}
}

// TestServiceLogFollowsNoLink: root makes it in a folder that may be somebody else's.
func TestServiceLogFollowsNoLink(t *testing.T) {
	b := newBench(t)
	c := &call{world: b.w}
	c.goos = "darwin"
	who := &account{Name: "anna", UID: os.Getuid(), GID: os.Getgid()}
	dir := filepath.Join(t.TempDir(), "data")
	spec := service.Spec{User: "anna", DataDir: dir, LogFile: filepath.Join(dir, logName)}
	for range 2 {
		if err := c.ownLog(spec, who); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(spec.LogFile); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Remove(spec.LogFile), os.Symlink(elsewhere, spec.LogFile)); err != nil {
		t.Fatal(err)
	}
	err := c.ownLog(spec, who)
	if _, there := os.Lstat(elsewhere); !errors.Is(there, fs.ErrNotExist) {
		t.Errorf("made what the link names: %v, %v", err, there)
	}
}
