package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	gopsutil "github.com/shirou/gopsutil/v4/disk"

	"lanjobs/task"
)

// Host runs the programs of this machine that tell something, and reads its files; System is the real one.
type Host interface {
	Run(ctx context.Context, name string, args ...string) (string, error)
	ReadFile(name string) ([]byte, error)
}

// Where says what to look at.
type Where struct {
	DataDir string
	Socket  string
	Program string
	Version string
	Clock   task.Clock
	Host    Host
}

// syncs is how often the disk is asked to write.
const syncs = 50

// Look gathers what this machine tells by itself.
func Look(ctx context.Context, w Where) *Facts {
	f := &Facts{OS: runtime.GOOS, Version: w.Version, Program: w.Program}
	f.Folder = Folder{Path: w.DataDir, Socket: w.Socket, Most: 103}
	if info, err := os.Stat(w.DataDir); err == nil {
		f.Folder.Mode = info.Mode()
	}
	f.Disk = lookDisk(w)
	f.Sleep = lookSleep(ctx, w.Host)
	_, f.Zones = time.LoadLocation("Europe/Berlin")
	f.Quarantined = quarantined(ctx, w.Host, w.Program)
	return f
}

// lookDisk measures where the data folder is, or would be made.
func lookDisk(w Where) Disk {
	dir := w.DataDir
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	d := Disk{System: FileSystem(dir)}
	d.Network = IsNetwork(d.System)
	if u, err := gopsutil.Usage(dir); err == nil {
		d.FreeMB = int(u.Free >> 20)
	} else {
		d.Err = err
	}
	if d.Err == nil && dir == w.DataDir {
		d.Syncs, d.Err = measure(dir, w.Clock)
	}
	return d
}

// measure writes small pieces, each synced, and gives how long they took, sorted.
func measure(dir string, clock task.Clock) (took []time.Duration, err error) {
	f, err := os.CreateTemp(dir, "doctor-*.tmp")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	page := make([]byte, 4096)
	for range syncs {
		start := clock.Awake()
		if _, err := f.Write(page); err != nil {
			return took, err
		}
		if err := f.Sync(); err != nil {
			return took, err
		}
		took = append(took, clock.Awake()-start)
	}
	slices.Sort(took)
	return took, nil
}
