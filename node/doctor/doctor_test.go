package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// well is a voter of three, with nothing to say against it.
func well() *Facts {
	peer := func(name string) Peer {
		return Peer{Name: name, Version: "1.4.0", HasClock: true, Ahead: time.Second, Probed: true, Reached: 1, Sent: 20, Got: 20, BackSent: 20, BackGot: 20}
	}
	return &Facts{OS: "linux", Version: "1.4.0", Program: "/usr/local/bin/lanjobs",
		Disk:   Disk{System: "ext4", FreeMB: 212_000, Syncs: slices.Repeat([]time.Duration{8 * time.Millisecond}, 50)},
		Folder: Folder{Path: "/data", Mode: fs.ModeDir | 0o700, Socket: "/data/lanjobs.sock", Most: 103},
		Sleep:  Sleep{Known: true, How: "logind IdleAction=ignore"},
		Node: &Node{Name: "mini-1", Member: true, Voter: true, Seat: true, Limits: "cgroup", Service: true, Port: 7420, Members: 3, Leader: true,
			Addrs: []Addr{{"192.168.1.5:7420", "eth0"}}, Peers: []Peer{peer("nas"), peer("pc-win")},
			Voters: []Voter{{"mini-1", "h1", true}, {"nas", "h2", true}, {"pc-win", "h3", true}}}}
}

func TestAllIsWell(t *testing.T) {
	for _, f := range Judge(well()) {
		if f.Level != task.LevelOK || f.Fix != "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		check string
		with  func(*Facts)
		level task.Level
		text  string
		fix   string
	}{
		{"binary", func(f *Facts) { f.Node.Peers[0].Version = "1.3.9" }, task.LevelWarn, "1.4.0 here; nas 1.3.9", "one version"},
		{"disk", nil, task.LevelOK, "data folder on ext4, fsync p99 8ms (50 writes); 212 GB free", ""},
		{"disk", func(f *Facts) { f.Disk.System, f.Disk.Network = "nfs4", true }, task.LevelBad, "nfs4, a network share", "--data-dir"},
		{"disk", func(f *Facts) { f.Disk.Err = errors.New("read-only") }, task.LevelBad, "/data cannot be written: read-only", "Mend"},
		{"disk", func(f *Facts) { f.Disk.FreeMB = 150 }, task.LevelBad, "150 MB free", "Make room"},
		{"disk", func(f *Facts) { f.Disk.FreeMB = 1500 }, task.LevelWarn, "1500 MB free", "Make room"},
		{"disk", func(f *Facts) { f.Disk.Syncs[49] = 300 * time.Millisecond }, task.LevelWarn, "fsync p99 300ms", "--tempo 2"},
		{"disk", func(f *Facts) { f.Disk.Syncs[49] = 2 * time.Second }, task.LevelBad, "fsync p99 2s", "--tempo 3"},
		{"folder", func(f *Facts) { f.Folder.Mode = fs.ModeDir | 0o755 }, task.LevelBad, "open to other users (0755)", "chmod 700 /data"},
		{"paths", func(f *Facts) { f.Folder.Socket = strings.Repeat("x", 104) }, task.LevelBad, "socket path 104 of 103 bytes", "--data-dir"},
		{"sleep", func(f *Facts) {
			f.OS, f.Sleep = "darwin", Sleep{Known: true, Sleeps: true, After: 10 * time.Minute, How: "pmset"}
		}, task.LevelBad, "this voter sleeps after 10m idle (pmset)", "sudo pmset -a sleep 0   or: lanjobs node demote mini-1"},
		{"sleep", func(f *Facts) {
			f.Node.Seat, f.Sleep = false, Sleep{Known: true, Sleeps: true, How: "logind IdleAction=suspend"}
		}, task.LevelWarn, "its work moves", "systemctl mask"},
		{"sleep", func(f *Facts) { f.Sleep = Sleep{How: "no systemd-logind"} }, task.LevelUnknown, "cannot tell whether this machine sleeps when idle (no systemd-logind)", ""},
		{"awake", nil, task.LevelOK, "is kept awake while tasks run", ""},
		{"awake", func(f *Facts) { f.Node.Awake = "held: sleep and idle" }, task.LevelOK, "is kept awake now, while tasks run (sleep and idle)", ""},
		{"awake", func(f *Facts) { f.Node.Awake = "cannot be held: no system bus" }, task.LevelOK, "(cannot be held: no system bus); it is not known to sleep", ""},
		{"awake", func(f *Facts) {
			f.Node.Awake, f.Sleep = "cannot be held: no system bus", Sleep{Known: true, Sleeps: true}
		},
			task.LevelWarn, "is not kept awake while tasks run (cannot be held: no system bus)", "systemctl mask"},
		{"awake", func(f *Facts) { f.Node.Awake, f.Sleep = "never held (--inhibit never)", Sleep{} }, task.LevelOK, "never held", ""},
		{"awake", func(f *Facts) { f.Node.Awake, f.Node.Laptop, f.Sleep = "never held (--inhibit never)", true, Sleep{} }, task.LevelWarn, "its work moves", "--inhibit mains"},
		{"awake", func(f *Facts) {
			f.Node.Awake, f.Sleep = "not held: on battery (--inhibit mains)", Sleep{Known: true, Sleeps: true}
		}, task.LevelWarn, "on battery", "--inhibit always"},
		{"zones", func(f *Facts) { f.Zones = errors.New("none") }, task.LevelBad, "none", "release"},
		{"quarantine", func(f *Facts) { f.OS, f.Quarantined = "darwin", true }, task.LevelWarn, "in quarantine", "xattr -d"},
		{"service", func(f *Facts) { f.Node.Service = false }, task.LevelWarn, "does not survive a restart", "sudo lanjobs service install"},
		{"service", func(f *Facts) { f.Node.Service, f.Node.First = false, true }, task.LevelOK, "container", ""},
		{"limits", func(f *Facts) {
			f.Node.Limits, f.Node.Service = "not enforced: systemd has not delegated the control group", false
		}, task.LevelWarn, "not enforced: systemd has not delegated", "service install"},
		{"limits", func(f *Facts) { f.Node.Limits = "not enforced: no controllers" }, task.LevelWarn, "no controllers", ""},
		{"clock", func(f *Facts) { f.Node.Peers[0].Ahead = -94 * time.Second }, task.LevelWarn, "nas is 1m34s behind mini-1. Leases do not use clocks", "timedatectl"},
		{"clock", func(f *Facts) { f.Node.Peers[0].Ahead = 31 * time.Second }, task.LevelWarn, "nas is 31s ahead of mini-1", ""},
		{"clock", func(f *Facts) { f.Node.Peers[0].HasClock, f.Node.Peers[1].HasClock = false, false }, task.LevelUnknown, "told the time", ""},
		{"ports", nil, task.LevelOK, "7420/tcp and 7420/udp reachable both ways: nas, pc-win", ""},
		{"ports", func(f *Facts) { f.Node.Peers[1].Err = errors.New("i/o timeout") }, task.LevelBad, "pc-win is not reached from here: i/o timeout", "ufw allow 7420"},
		{"ports", func(f *Facts) {
			f.Node.Peers[1].Reached, f.Node.Peers[1].Failed = 0, []Failed{{"192.168.1.5:7420", "i/o timeout"}}
		}, task.LevelBad, "pc-win does not reach 192.168.1.5:7420 (i/o timeout)", "ufw"},
		{"ports", func(f *Facts) { f.OS, f.Node.Peers[1].BackGot = "windows", 0 }, task.LevelWarn, "7420/udp does not get through to or from pc-win", "doctor --fix"},
		{"ports", func(f *Facts) { f.Node.Peers[1].Err, f.Node.Peers[1].Down = errors.New("refused"), true }, task.LevelOK, "both ways: nas", ""},
		{"network", func(f *Facts) { f.Node.Peers[1].Err, f.Node.Peers[1].Down = errors.New("refused"), true }, task.LevelWarn, "silent: pc-win (its node does not run)", "Wake"},
		{"network", func(f *Facts) { f.Node.Peers[0].Got, f.Node.Peers[0].BackGot = 19, 19 }, task.LevelWarn, "gossip UDP to nas: 5% of 40 lost", "cable"},
		{"network", func(f *Facts) { f.Node.Peers[0].Away = 4 * time.Minute }, task.LevelWarn, "silent: nas (for 4m0s)", ""},
		{"address", func(f *Facts) {
			f.Node.Addrs = []Addr{{"100.64.0.7:7420", "tailscale0"}, {"192.168.1.5:7420", "eth0"}}
		}, task.LevelWarn, "100.64.0.7:7420, which others try first, is of tailscale0", "--listen"},
		{"address", func(f *Facts) { f.Node.Addrs = []Addr{{"100.64.0.7:7420", "tailscale0"}} }, task.LevelOK, "tailscale0", ""}, // all that there is
		{"address", func(f *Facts) {
			f.Node.Addrs = []Addr{{"192.168.1.5:7420", "eth0"}, {"192.168.2.5:7420", "wlan0"}}
		}, task.LevelOK, "192.168.1.5:7420 first (eth0), then those of wlan0", ""},
		{"address", func(f *Facts) { f.Node.Addrs = nil }, task.LevelBad, "no usable network interface", ""},
		{"quorum", func(f *Facts) { f.Node.Voters[1].Answers = false }, task.LevelWarn, "2 of 3 voters answer, 2 are needed: survives no failure more", "Wake nas"},
		{"quorum", func(f *Facts) { f.Node.Voters[1].Answers, f.Node.Voters[2].Answers = false, false }, task.LevelBad, "nothing can be changed", "lost-quorum"},
		{"quorum", func(f *Facts) { f.Node.Voters, f.Node.Members = f.Node.Voters[:1], 2 }, task.LevelWarn, "1 voter", "third machine"},
		{"voters", func(f *Facts) { f.Node.Voters[2].Host = "h1" }, task.LevelWarn, "mini-1 and pc-win vote and are one machine", "demote"},
		{"voters", func(f *Facts) { f.Node.Voters[2].Host = "" }, task.LevelUnknown, "not all voters tell", ""},
		{"ports", func(f *Facts) { f.Node.Member = false }, task.LevelOK, "this machine only", ""},
		{"node", func(f *Facts) { f.Node = nil }, task.LevelWarn, "no node runs here", "lanjobs init"},
	} {
		f := well()
		if c.with != nil {
			c.with(f)
		}
		found := false
		for _, got := range Judge(f) {
			if got.Check != c.check {
				continue
			}
			found = true
			if got.Level != c.level || !strings.Contains(got.Text, c.text) || !strings.Contains(got.Fix, c.fix) || c.fix == "" && c.level == task.LevelOK && got.Fix != "" {
				t.Errorf("want %s %q %q, got %+v", c.level, c.text, c.fix, got)
			}
		}
		if !found {
			t.Errorf("%s: no finding", c.check)
		}
	}
}

// told is a machine whose programs and files say what they are told to.
type told map[string]string

func (h told) Run(_ context.Context, name string, args ...string) (string, error) {
	text, ok := h[strings.Join(append([]string{name}, args...), " ")]
	if !ok {
		return "", errors.New("not here")
	}
	return text, nil
}

func (h told) ReadFile(name string) ([]byte, error) {
	text, ok := h[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func TestSleepOfEachSystem(t *testing.T) {
	const conf, gnome = "/etc/systemd/logind.conf", "gsettings get org.gnome.settings-daemon.plugins.power sleep-inactive-ac-"
	for _, c := range []struct {
		name string
		look func(context.Context, Host) Sleep
		host told
		want Sleep
	}{
		{"server", linuxSleep, told{conf: "[Login]\n#IdleAction=suspend\n"}, Sleep{Known: true, How: "logind IdleAction=ignore"}},
		{"idle", linuxSleep, told{conf: "[Login]\nIdleAction=suspend\n"}, Sleep{Known: true, Sleeps: true, How: "logind IdleAction=suspend"}},
		{"masked", linuxSleep, told{conf: "IdleAction=suspend\n", "systemctl is-enabled sleep.target": "masked\n"}, Sleep{Known: true, How: "sleep.target is masked"}},
		{"gnome", linuxSleep, told{conf: "", gnome + "type": "'suspend'\n", gnome + "timeout": "1200\n"}, Sleep{Known: true, Sleeps: true, After: 20 * time.Minute, How: "GNOME: suspend"}},
		{"gnome never", linuxSleep, told{conf: "", gnome + "type": "'nothing'\n", gnome + "timeout": "1200\n", "systemctl get-default": "graphical.target\n"}, Sleep{Known: true, How: "logind IdleAction=ignore"}},
		{"other desktop", linuxSleep, told{conf: "", "systemctl get-default": "graphical.target\n"}, Sleep{How: "a desktop that lanjobs does not know"}},
		{"container", linuxSleep, told{}, Sleep{How: "no systemd-logind"}},
		{"mac", macSleep, told{"pmset -g": "System-wide power settings:\n displaysleep         5\n disksleep            10\n sleep                10 (sleep prevented by powerd)\n"}, Sleep{Known: true, Sleeps: true, After: 10 * time.Minute, How: "pmset"}},
		{"mac never", macSleep, told{"pmset -g": " sleep                0\n"}, Sleep{Known: true, How: "pmset"}},
		{"mac silent", macSleep, told{}, Sleep{How: "pmset says nothing"}},
		{"windows", windowsSleep, told{"powercfg /query SCHEME_CURRENT SUB_SLEEP STANDBYIDLE": "  Minimum: 0x00000000\r\n  Maximum: 0xffffffff\r\n  Netz: 0x00000708\r\n  Batterie: 0x00000384\r\n"}, Sleep{Known: true, Sleeps: true, After: 30 * time.Minute, How: "powercfg, on mains"}},
		{"windows never", windowsSleep, told{"powercfg /query SCHEME_CURRENT SUB_SLEEP STANDBYIDLE": "a: 0x00000000\nb: 0x00000384\n"}, Sleep{Known: true, How: "powercfg, on mains"}},
	} {
		if got := c.look(t.Context(), c.host); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLookAndFix(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := Where{DataDir: dir, Socket: filepath.Join(dir, "s"), Program: "x", Version: "1", Clock: runner.SystemClock(), Host: told{}}
	f := Look(t.Context(), w)
	if f.Disk.Err != nil || len(f.Disk.Syncs) != syncs || f.Disk.FreeMB == 0 || !slices.IsSorted(f.Disk.Syncs) || f.Zones != nil {
		t.Errorf("%+v", f)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if did := Fix(t.Context(), w.Host, "linux", w, 7420, Judge(f)); len(did) != 1 || did[0] != "chmod 700 "+dir {
		t.Errorf("%v", did)
	}
	if did := Fix(t.Context(), w.Host, "linux", w, 7420, Judge(Look(t.Context(), w))); len(did) != 0 {
		t.Errorf("again: %v", did)
	}
	ports := []task.Finding{{Check: "ports", Level: task.LevelBad}}
	if did := Fix(t.Context(), told{}, "linux", w, 7420, ports); len(did) != 0 {
		t.Errorf("a firewall of Linux: %v", did)
	}
	if did := Fix(t.Context(), told{}, "windows", w, 7420, ports); len(did) != 2 {
		t.Errorf("%v", did)
	}
	// A folder that is not there yet is judged by the one above.
	w.DataDir = filepath.Join(dir, "a", "b")
	if f := Look(t.Context(), w); f.Disk.Err != nil || f.Disk.System == "" || f.Folder.Mode != 0 {
		t.Errorf("%+v", f)
	}
}
