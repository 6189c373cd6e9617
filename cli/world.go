package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"os/user"
	"runtime"
	"syscall"

	"golang.org/x/term"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// world is what lies outside of a command: it is handed in, so that a test can be any terminal on any machine.
type world struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	inTTY          bool
	outTTY, errTTY bool
	secret         func(context.Context) ([]byte, error) // a line typed on the terminal, unseen
	size           func() (columns, rows int)            // of the terminal, 0 = unknown
	getenv         func(string) string
	goos           string
	user           string
	dir            string // working directory, "" = unknown
	exe            string // this binary
	version        string
	clock          task.Clock
	nodes          nodes
	door           func(socket string) http.RoundTripper // to the API of the node behind a socket
	configDir      func() (string, error)                // this person's folder of settings
	access         func(*transport.Access) (http.RoundTripper, error)
	logIn          func(context.Context, transport.LoginConfig) (*transport.Access, error)
	logInByCode    func(context.Context, transport.CodeLogin) (*transport.Access, error)
	launch         launcher
	services       servicing
	lock           func(file string) (unlock func(), free bool, err error)
	again          <-chan struct{} // closed at the second Ctrl-C
}

// Causes for which a command's context ends.
var (
	errInterrupted = errors.New("interrupted")
	errTimedOut    = errors.New("time is up")
)

// system is the real world.
func system(version string) *world {
	w := &world{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		inTTY:    term.IsTerminal(int(os.Stdin.Fd())),
		outTTY:   capable(os.Stdout),
		errTTY:   capable(os.Stderr),
		secret:   readSecret,
		size:     terminalSize,
		getenv:   os.Getenv,
		goos:     runtime.GOOS,
		version:  version,
		clock:    runner.SystemClock(),
		nodes:    packageNode(),
		door:     transport.SocketDoor,
		launch:   launchDetached,
		services: systemServices(),
		lock:     lockFile,

		configDir: os.UserConfigDir, logIn: transport.Login, logInByCode: transport.LoginByCode,
	}
	w.access = func(a *transport.Access) (http.RoundTripper, error) {
		return transport.AccessDoor(a, transport.DialTCP, w.clock)
	}
	w.dir, _ = os.Getwd()
	w.exe, _ = os.Executable()
	if u, err := user.Current(); err == nil {
		w.user = u.Username
	}
	return w
}

// capable tells whether a stream is a terminal that understands cursor movement.
func capable(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" && enableTerminal(f) == nil
}

func terminalSize() (columns, rows int) {
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w, h
		}
	}
	return 0, 0
}

// interruptible gives a context that the first Ctrl-C ends. The second one closes w.again, for commands that are still
// cleaning up; from the third on the signal does what it does by default, so that nothing can hold a person up.
func interruptible(ctx context.Context, w *world) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // a closed terminal is no crash; nohup means it
		signal.Notify(signals, syscall.SIGHUP)
	}
	again, over := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	w.again = again
	go func() {
		defer close(done)
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-over:
			return
		}
		select {
		case <-signals:
			close(again)
			signal.Stop(signals)
		case <-over:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(over)
		<-done
		cancel(nil)
	}
}
