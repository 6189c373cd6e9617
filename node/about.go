package node

import (
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"lanjobs/task"
)

// Level is the highest cluster level that this binary can apply (R47).
const Level = 1

// shells are those that a job file may name; the ones on the PATH become labels.
var shells = []string{"sh", "bash", "zsh", "pwsh", "cmd", "python3"}

// info is what this node says of itself when it registers (R5).
func (m *machine) info() task.NodeInfo {
	i := task.NodeInfo{ID: m.identity.NodeID, Name: m.identity.Name, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Version: m.cfg.Version, Level: Level, Slots: m.cfg.Slots, Voter: !m.settings.Worker, Labels: slices.Clone(m.cfg.Labels)}
	slices.SortFunc(i.Labels, func(a, b task.KV) int { return strings.Compare(a.Name, b.Name) })
	if v, err := mem.VirtualMemory(); err == nil {
		i.MemoryMB = int(v.Total >> 20)
	}
	for _, s := range shells {
		if _, err := exec.LookPath(s); err == nil {
			i.Shells = append(i.Shells, s)
		}
	}
	return i
}

// load is what heartbeats carry (R6). What the system does not tell is 0.
func (m *machine) load() task.Load {
	var l task.Load
	if a, err := load.Avg(); err == nil {
		l.CPU = a.Load1
	}
	if v, err := mem.VirtualMemory(); err == nil {
		l.MemFreeMB = int(v.Available >> 20)
	}
	if d, err := disk.Usage(m.cfg.DataDir); err == nil {
		l.DiskFreeMB = int(d.Free >> 20)
	}
	return l
}

// owner names whoever owns this node, for the audit log: user@machine.
func owner() string {
	host, _ := os.Hostname()
	name := "owner"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + CleanName(host)
}
