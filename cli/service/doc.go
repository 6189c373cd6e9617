// Package service speaks to the service manager of this machine: systemd, launchd or the service control manager of Windows. It
// writes what the manager is to run, and asks it to start, stop and tell. It knows no node: what is to run is a command line.
//
// The units are ours (R44). Whatever the end of the agent, it is started again 2 seconds later; ended are only it and never its guard,
// since running tasks wait there for the next agent (KillMode=process, AbandonProcessGroup). An orderly end has 90 seconds, enough to
// give work back and hand leadership over. No address stands in a unit: machines get new ones (R2).
//
// Where a manager does not answer or refuses, its own words are in the error; nothing is tried twice.
package service

import (
	"context"
	"errors"
	"fmt"
)

// Name is the service's name for every manager.
const Name = "lanjobs"

// Mark begins the first line of every unit that this package wrote. A unit without it is somebody's own and is left alone.
const Mark = "Written by lanjobs service install"

// ExitLeft is the exit code of a node that left its cluster: its data were put aside, and it is not to be started again. It is also
// what systemctl says of a unit that does not run.
const ExitLeft = 3

// Spec is what a service runs.
type Spec struct {
	Exe     string   // absolute
	Args    []string // without the program
	User    string   // who it runs as; "" = whoever the manager belongs to
	Home    string   // of that user
	DataDir string   // of the node: absolute
	LogFile string   // where launchd puts what it writes
	// Password of User, where the manager wants one (Windows).
	Password string
}

// State is what a manager knows of the service.
type State struct {
	Manager   string `json:"manager"` // systemd, launchd, windows
	Unit      string `json:"unit"`    // its file, or its name
	Installed bool   `json:"installed"`
	Ours      bool   `json:"-"`       // written by this package
	Running   bool   `json:"running"` // or about to
	AtBoot    bool   `json:"starts_with_machine"`
	PID       int    `json:"pid,omitempty"`
	User      string `json:"user,omitempty"`
	DataDir   string `json:"data_dir,omitempty"`
	Exe       string `json:"program,omitempty"`
}

// Manager is the service manager of a machine or of one user.
type Manager interface {
	// Check tells whether the manager runs here. ErrNoManager: it does not, with the reason. Unit works all the same.
	Check(context.Context) error
	// Unit is what Install would give the manager, for people.
	Unit(Spec) (place, text string)
	// Install makes the manager know the service, start it with the machine and run it now, whatever there was before. A *Warning:
	// it did, but not all is as it should be.
	Install(context.Context, Spec) error
	Uninstall(context.Context) error // stopped first; one that is not there is no error
	Start(context.Context) error
	Stop(context.Context) error // returns when it has ended
	State(context.Context) (State, error)
}

// ErrNoManager: no service manager that this package knows runs here.
var ErrNoManager = errors.New("no service manager")

// Warning is what a person has to know of a service that was installed.
type Warning struct{ Text string }

func (w *Warning) Error() string { return w.Text }

// Host is the machine as a manager needs it; System is the real one.
type Host interface {
	// Run runs a program and gives all that it wrote. An error has its last line.
	Run(ctx context.Context, name string, args ...string) (string, error)
	ReadFile(name string) ([]byte, error)
	WriteFile(name string, text []byte) error // with the folders above it
	Remove(name string) error
	Exists(name string) bool
	Getenv(name string) string
	UID() int
	Home() string
}

// New gives the manager of the machine, or with user that of the calling user.
func New(h Host, goos string, user bool) (Manager, error) {
	switch {
	case goos == "linux":
		return &systemd{h, user}, nil
	case goos == "darwin":
		return &launchd{h, user}, nil
	case goos == "windows" && !user:
		return newSCM(), nil
	case goos == "windows":
		return nil, fmt.Errorf("%w for single users on Windows", ErrNoManager)
	}
	return nil, fmt.Errorf("%w known for %s", ErrNoManager, goos)
}
