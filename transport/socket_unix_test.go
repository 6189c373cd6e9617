//go:build unix

package transport_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lanjobs/transport"
)

// Somebody else's node, seen by an ordinary user; and a folder in a public place that somebody else made first, in which an
// answering socket could be theirs. Both need a second user: the test runs itself as nobody.
func TestSocketOfAnotherUser(t *testing.T) {
	if path := os.Getenv("LANJOBS_TEST_SOCKET"); path != "" {
		_, err := transport.DialSocket(t.Context(), path)
		if !errors.Is(err, transport.ErrSocketPermission) {
			t.Errorf("dial %s: %v, want ErrSocketPermission", path, err)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to become another user")
	}
	public, err := os.MkdirTemp("/tmp", "lj")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(public)
	closed, open := filepath.Join(public, "closed"), filepath.Join(public, "open")
	for dir, mode := range map[string]os.FileMode{public: 0o755, closed: 0o700, open: 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(public, "test")
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{closed, open} {
		apiNode(t, dir, answers200)
		if err := os.Chmod(transport.SocketPath(dir), 0o666); err != nil { // an impostor would leave it open
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "-test.run=^TestSocketOfAnotherUser$", "-test.v")
		cmd.Dir = public
		cmd.Env = append(os.Environ(), "LANJOBS_TEST_SOCKET="+transport.SocketPath(dir))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%s: %v\n%s", dir, err, out)
		}
	}
}
