package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// Config is everything a node is told from outside. Flags > environment > default; there is no configuration file.
type Config struct {
	DataDir string    // identity, Raft store, logs; one node per folder
	Name    string    // shown to people; the host name by default
	Listen  string    // ADDR:PORT of the cluster port; used once the node is a member
	Labels  []task.KV // nil = as an earlier start was told, empty = none
	Slots   int       // attempts at once; 0 = the number of processors
	// Rules are what the owner of this machine lets the cluster do with it; nil leaves each as it was told to an earlier start.
	Rules Rules
	// Embedded: inside `lanjobs run`, nothing listens, not even the unix socket.
	Embedded bool
	Version  string
	Exe      string // this binary, for the guard and the task helper
	Log      *slog.Logger
	Clock    task.Clock
	// Service: a service manager runs it.
	Service bool
	// NoopRunner is for benchmarks: attempts succeed without a process.
	NoopRunner bool
	// Inhibitor keeps it awake, Sleeps tells of its sleeps; nil = by the means of the system.
	Inhibitor runner.Inhibitor
	Sleeps    func(context.Context, task.Clock, runner.Sleeper) error
	// Tempo multiplies Raft's time-outs for slow disks and Wi-Fi; 1 by default.
	Tempo float64
}

// DefaultConfig is a node of this user on this machine.
func DefaultConfig() Config {
	host, _ := os.Hostname()
	exe, _ := os.Executable()
	return Config{
		DataDir: DefaultDataDir(),
		Name:    CleanName(host),
		Listen:  transport.DefaultListen(),
		Slots:   runtime.NumCPU(),
		Exe:     exe,
		Log:     slog.New(slog.DiscardHandler),
		Tempo:   1,
	}
}

// DefaultDataDir is where a node of this user keeps its data.
func DefaultDataDir() string {
	if d, err := os.UserConfigDir(); err == nil && runtime.GOOS != "linux" {
		return filepath.Join(d, "lanjobs")
	}
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "lanjobs")
	}
	if h, err := os.UserHomeDir(); err == nil {
		return filepath.Join(h, ".local", "share", "lanjobs")
	}
	return filepath.Join(os.TempDir(), "lanjobs")
}

// DataDirIn is where a node of another user keeps its data, by that user's home.
func DataDirIn(home string) string {
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(home, "Library", "Application Support", "lanjobs")
	case "windows":
		return filepath.Join(home, "AppData", "Roaming", "lanjobs")
	}
	return filepath.Join(home, ".local", "share", "lanjobs")
}

// CleanName makes a node name of a host name: its first label, lower case, a-z 0-9 and -.
func CleanName(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, host), "-")
	if name == "" {
		return "node"
	}
	return name[:min(len(name), task.MaxNameLength)]
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	var errs []error
	if c.DataDir == "" {
		errs = append(errs, errors.New("data folder is empty: set --data-dir"))
	}
	if c.Name == "" || c.Name != CleanName(c.Name) {
		errs = append(errs, fmt.Errorf("node name %q: use a-z, 0-9 and -, at most %d characters (for example %q)", c.Name, task.MaxNameLength, CleanName(c.Name)))
	}
	if c.Slots < 1 || c.Slots > task.MaxSlots {
		errs = append(errs, fmt.Errorf("slots %d: use 1 to %d", c.Slots, task.MaxSlots))
	}
	if err := c.Rules.fault(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
