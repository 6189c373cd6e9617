package node

import (
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Level is the highest cluster level that this binary can apply (R47).
const Level = fsm.Level

// shells are those that a job file may name; the ones on the PATH become labels.
var shells = []string{"sh", "bash", "zsh", "pwsh", "cmd", "python3"}

// info is what this node says of itself when it registers (R5); read from the machine once in its life.
func (m *machine) info() task.NodeInfo {
	i := m.about()
	if limits := m.limits.Load(); limits != nil {
		i.Limits = *limits
	}
	i.MACs = m.macs()
	return i
}

func (m *machine) readInfo() task.NodeInfo {
	i := task.NodeInfo{ID: m.identity.NodeID, Name: m.identity.Name, OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Version: m.cfg.Version, Level: Level, Slots: m.cfg.Slots, Voter: !m.settings.Worker, Labels: slices.Clone(m.cfg.Labels)}
	m.settings.Rules.describe(&i)
	slices.SortFunc(i.Labels, func(a, b task.KV) int { return strings.Compare(a.Name, b.Name) })
	i.Host = transport.MachineFingerprint()
	i.Laptop, _ = m.power.read(m.clock.Awake())
	if v, err := mem.VirtualMemory(); err == nil {
		i.MemoryMB = int(v.Total >> 20)
	}
	for _, s := range shells {
		_, err := exec.LookPath(s)
		if err != nil && s == "pwsh" { // the one that comes with Windows does as well
			_, err = exec.LookPath("powershell")
		}
		if err == nil {
			i.Shells = append(i.Shells, s)
		}
	}
	return i
}

// loadEvery is how old the load that a heartbeat carries may be: messages may be many a second.
const loadEvery = 5 * time.Second

// loadMeter measures this machine's load now and then (R6).
type loadMeter struct {
	mu   sync.Mutex
	at   time.Duration
	last task.Load
	cpu  cpuMeter
}

// load is what heartbeats carry (R6).
func (m *machine) load() task.Load {
	m.meter.mu.Lock()
	defer m.meter.mu.Unlock()
	if now := m.clock.Awake(); m.meter.at == 0 || now-m.meter.at >= loadEvery {
		m.meter.at, m.meter.last = now, m.readLoad()
	}
	return m.meter.last
}

// readLoad measures it; what the system does not tell is 0. The meter's mu is held.
func (m *machine) readLoad() task.Load {
	l := task.Load{CPU: m.meter.cpu.busy()}
	if v, err := mem.VirtualMemory(); err == nil {
		l.MemFreeMB = int(v.Available >> 20)
	}
	if d, err := disk.Usage(m.cfg.DataDir); err == nil {
		l.DiskFreeMB = int(d.Free >> 20)
	}
	l.Battery, l.Awake = m.onBattery(), m.awake.State()
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
