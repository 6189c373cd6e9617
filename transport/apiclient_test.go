package transport_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// apiNode serves a handler on the socket of a data folder.
func apiNode(t *testing.T, dir string, h http.Handler) *transport.APIClient {
	t.Helper()
	ln, err := transport.ListenSocket(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	c := transport.NewAPIClient(transport.SocketDoor(transport.SocketPath(dir)))
	t.Cleanup(func() {
		c.CloseIdle()
		_ = srv.Close()
		<-done
	})
	return c
}

func TestAPIOverTheSocket(t *testing.T) {
	c := apiNode(t, t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/v1/fail":
			transport.WriteProblem(w, task.NewProblem(task.ErrConflict, "used.", "take another"))
		case "/v1/foreign":
			http.Error(w, "what?", http.StatusBadGateway)
		case "/v1/half":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"method":`)
		default:
			_ = json.NewEncoder(w).Encode(map[string]string{
				"method": r.Method, "uri": r.URL.String(), "body": string(body), "id": r.Header.Get(transport.HeaderRequestID),
			})
		}
	}))
	var reply map[string]string
	if err := c.Get(t.Context(), "/v1/jobs?limit=3", &reply); err != nil || reply["method"] != "GET" || reply["uri"] != "/v1/jobs?limit=3" {
		t.Errorf("get: %v, %v", reply, err)
	}
	if err := c.Post(t.Context(), "/v1/jobs", "r1", transport.LeaveBody{Force: true}, &reply); err != nil || reply["body"] != `{"force":true}` || reply["id"] != "r1" {
		t.Errorf("post: %v, %v", reply, err)
	}
	if err := c.Post(t.Context(), "/v1/jobs", "r2", []byte("run: echo"), &reply); err != nil || reply["body"] != "run: echo" {
		t.Errorf("post of bytes: %v, %v", reply, err)
	}
	if err := c.Delete(t.Context(), "/v1/jobs/j1", "r3", &reply); err != nil || reply["method"] != "DELETE" || reply["id"] != "r3" {
		t.Errorf("delete: %v, %v", reply, err)
	}
	err := c.Get(t.Context(), "/v1/fail", &reply)
	if p, ok := errors.AsType[*task.Problem](err); !ok || !errors.Is(err, task.ErrConflict) || p.Hint != "take another" {
		t.Errorf("problem: %v", err)
	}
	if err := c.Get(t.Context(), "/v1/foreign", nil); !errors.Is(err, task.ErrNoLeader) || err.Error() != "what?" {
		t.Errorf("a status without a problem: %v", err)
	}
	if err := c.Get(t.Context(), "/v1/half", &reply); err == nil {
		t.Error("half an answer was taken")
	}
}

// Logs and events arrive while they happen, and end when nobody wants more.
func TestAPIStreams(t *testing.T) {
	more, over := make(chan string), make(chan struct{})
	c := apiNode(t, t.TempDir(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case line := <-more:
				_, _ = fmt.Fprintln(w, line)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := c.Open(ctx, http.MethodGet, "/v1/events?follow=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for _, line := range []string{"one", "two"} {
		more <- line
		if !lines.Scan() || lines.Text() != line {
			t.Fatalf("read %q, %v; want %q", lines.Text(), lines.Err(), line)
		}
	}
	cancel()
	<-over
}

func TestNobodyAtTheSocket(t *testing.T) {
	dir := t.TempDir()
	ask := func(dir string) error {
		return transport.NewAPIClient(transport.SocketDoor(transport.SocketPath(dir))).Get(t.Context(), "/v1/status", nil)
	}
	if err := ask(dir); !errors.Is(err, transport.ErrNoNode) {
		t.Errorf("no socket: %v", err)
	}
	if err := ask(filepath.Join(dir, "nowhere")); !errors.Is(err, transport.ErrNoNode) {
		t.Errorf("no folder: %v", err)
	}
	leaveSocket(t, transport.SocketPath(dir))
	if err := ask(dir); !errors.Is(err, transport.ErrNoNode) {
		t.Errorf("a dead node's socket: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	apiNode(t, dir, answers200) // the dead one's is replaced
	c := transport.NewAPIClient(transport.SocketDoor(transport.SocketPath(dir)))
	if err := c.Get(ctx, "/v1/status", nil); !errors.Is(err, gone) {
		t.Errorf("ended context: %v", err)
	}
	if _, err := transport.ListenSocket(t.Context(), dir); !errors.Is(err, task.ErrConflict) {
		t.Errorf("second node in the folder: %v", err)
	}
}

// leaveSocket is what a killed node leaves behind.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = ln.Close()
}

func TestLongFolderHasAShortSocket(t *testing.T) {
	short := t.TempDir()
	if want := filepath.Join(short, "lanjobs.sock"); transport.SocketPath(short) != want && len(want) <= 103 {
		t.Errorf("%s, want %s", transport.SocketPath(short), want)
	}
	run := filepath.Join("/tmp", fmt.Sprintf("lj-%d", os.Getpid()))
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(run)
	t.Setenv("XDG_RUNTIME_DIR", run)
	long := filepath.Join(t.TempDir(), strings.Repeat("long-", 20), "data")
	path := transport.SocketPath(long)
	if len(path) > 103 || !strings.HasPrefix(path, run) || path == transport.SocketPath(long+"2") {
		t.Errorf("socket %s", path)
	}
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	c := apiNode(t, long, answers200)
	if err := c.Get(t.Context(), "/v1/status", nil); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
}
