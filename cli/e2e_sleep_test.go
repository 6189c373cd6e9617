//go:build e2e && linux

package cli_test

import (
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
	"lanjobs/task/runner/logindtest"
	"lanjobs/transport"
)

// beds gives each node a system bus of its own, with a login manager that tells of sleeps.
func (l *lab) beds(names ...string) map[string]*logindtest.Bus {
	l.t.Helper()
	buses := map[string]*logindtest.Bus{}
	for _, name := range names {
		dir := filepath.Join(l.dir, "bus-"+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			l.t.Fatal(err)
		}
		b, err := logindtest.New(dir)
		if err != nil {
			l.t.Fatal(err)
		}
		l.t.Cleanup(b.Close)
		b.SetDelay(time.Minute) // a slow machine needs more than the usual 5 s
		buses[name] = b
	}
	return buses
}

// locks waits until a machine's locks are as they should be.
func (l *lab) locks(name string, b *logindtest.Bus, want ...string) {
	l.t.Helper()
	l.waitFor(20*time.Second, "locks of "+name+": "+strings.Join(want, ", "), func() bool {
		locks, _ := b.Locks()
		var have []string
		for _, k := range locks {
			have = append(have, k.Mode+" "+k.What)
		}
		return slices.Equal(have, want)
	})
}

// bedded is a cluster whose machines tell of their sleeps.
func bedded(t *testing.T) (*lab, map[string]*logindtest.Bus) {
	l := newLab(t)
	names := []string{"a", "b", "c"}
	buses := l.beds(names...)
	for i, name := range names {
		n := l.add(name, "127.0.0."+string(rune('1'+i))+":"+strconv.Itoa(l.port))
		n.wrap = []string{"env", "DBUS_SYSTEM_BUS_ADDRESS=" + buses[name].Address()}
	}
	l.start()
	for _, name := range names {
		l.locks(name, buses[name], "delay sleep")
	}
	return l, buses
}

func (l *lab) nodeView(asked *member, name string) (v task.NodeView) {
	for _, n := range l.status(asked).Nodes {
		if n.Name == name {
			return n
		}
	}
	return v
}

// TestProcSleep: a machine is held awake while a task runs on it and only then (I14); told to sleep, it gives its work back, which
// goes on elsewhere after its checkpoint, says so, and comes back (R15, R16).
func TestProcSleep(t *testing.T) {
	t.Parallel()
	l, buses := bedded(t)
	id := l.submit(l.nodes[0], l.file("moves", lease(longLease), steps))
	on := l.node(l.starts("moves", 1, 20*time.Second)[0].node)
	l.locks(on.name, buses[on.name], "block sleep:idle", "delay sleep")
	for _, n := range l.others(on) {
		l.locks(n.name, buses[n.name], "delay sleep")
	}
	asked := l.others(on)[0]
	if show := l.must(asked, "node", "show", on.name); !strings.Contains(show, "awake      ") {
		t.Errorf("node show says nothing of it:\n%s", show)
	}
	l.waitFor(20*time.Second, "some checkpoints", func() bool { return l.ledger.count("moves", "saved") >= 3 })
	if err := buses[on.name].PrepareForSleep(true); err != nil {
		t.Fatal(err)
	}
	l.locks(on.name, buses[on.name]) // the machine may sleep now
	if left := on.tasks(); len(left) > 0 {
		t.Errorf("processes %v are left for the sleep", left)
	}
	l.waitFor(20*time.Second, on.name+" is seen asleep", func() bool { return l.nodeView(asked, on.name).State == "asleep" })
	if text, _, _ := l.cli(asked, "", "status"); !strings.Contains(text, "asleep") || !strings.Contains(text, "(since ") {
		t.Errorf("status:\n%s", text)
	}
	l.starts("moves", 2, 20*time.Second) // long before the lease would have ended
	l.resumed("moves", on.name)
	if err := buses[on.name].PrepareForSleep(false); err != nil {
		t.Fatal(err)
	}
	l.waitFor(20*time.Second, "it is back", func() bool { return l.nodeView(asked, on.name).State == "ready" })
	l.locks(on.name, buses[on.name], "delay sleep")
	l.open("moves")
	l.ends(asked, id, task.JobSucceeded, 60*time.Second)
	l.ledger.noOverlap(t, "moves")
	if slept := l.events(asked, "", "node.sleep"); len(slept) != 1 || slept[0].NodeName != on.name {
		t.Errorf("events %+v", slept)
	}
	for name, b := range buses {
		l.locks(name, b, "delay sleep")
	}
}

// TestProcSleepOfTheLeader: it hands over before it sleeps.
func TestProcSleepOfTheLeader(t *testing.T) {
	t.Parallel()
	l, buses := bedded(t)
	old := l.leader()
	asked := l.others(old)[0]
	if err := buses[old.name].PrepareForSleep(true); err != nil {
		t.Fatal(err)
	}
	l.locks(old.name, buses[old.name])
	if v := l.status(old); v.LeaderName == old.name || v.Health == "no_leader" {
		t.Errorf("the leader is %q, %s, the moment the old one sleeps", v.LeaderName, v.Health)
	}
	old.kill(syscall.SIGSTOP)
	l.waitFor(20*time.Second, "the others know who leads, and that the old leader sleeps", func() bool {
		v := l.status(asked)
		return v.LeaderName != "" && v.LeaderName != old.name && l.nodeView(asked, old.name).State == "asleep"
	})
	old.kill(syscall.SIGCONT)
	if err := buses[old.name].PrepareForSleep(false); err != nil {
		t.Fatal(err)
	}
	l.waitFor(20*time.Second, "it is back", func() bool { return l.nodeView(asked, old.name).State == "ready" })
}

// TestProcAwakeOverACrash: a killed agent holds nothing; the next one takes it again with the task that the guard has kept, and lets go
// of it with the task.
func TestProcAwakeOverACrash(t *testing.T) {
	t.Parallel()
	l, buses := bedded(t)
	id := l.submit(l.nodes[0], l.file("kept", lease(longLease)+"\non_sleep: keep", untilGate))
	on := l.node(l.starts("kept", 1, 20*time.Second)[0].node)
	bus := buses[on.name]
	l.locks(on.name, bus, "block sleep:idle", "delay sleep")
	on.kill(syscall.SIGKILL)
	l.locks(on.name, bus)
	on.restart()
	l.locks(on.name, bus, "block sleep:idle", "delay sleep")
	// Kept over a sleep, it goes on as the same execution.
	if err := bus.PrepareForSleep(true); err != nil {
		t.Fatal(err)
	}
	l.locks(on.name, bus, "block sleep:idle")
	if err := bus.PrepareForSleep(false); err != nil {
		t.Fatal(err)
	}
	l.locks(on.name, bus, "block sleep:idle", "delay sleep")
	l.open("kept")
	l.ends(l.nodes[0], id, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "kept", 1)
	l.locks(on.name, bus, "delay sleep")
}

// TestNetWake: node wake sends the packet for the machine's card to its network, from every other machine.
func TestNetWake(t *testing.T) {
	t.Parallel()
	l, w := lan(t)
	w.cluster()
	target := l.others(l.leader())[1]
	rest := l.others(target)
	asked := rest[0]
	var v task.NodeView
	l.waitFor(10*time.Second, "its card is known", func() bool { return l.ask(asked, &v, "node", "show", target.name) && len(v.MACs) == 1 })
	mac, err := net.ParseMAC(v.MACs[0])
	if err != nil {
		t.Fatal(err)
	}
	target.kill(syscall.SIGSTOP)
	got := filepath.Join(l.dir, "packets")
	const listen = `import socket,sys
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM); s.bind(("",9)); s.settimeout(600)
open(sys.argv[1]+".up","w").close()
f=open(sys.argv[1],"w")
while True:
    data,who=s.recvfrom(2000)
    f.write(who[0]+" "+data.hex()+"\n"); f.flush()`
	ear := exec.Command("ip", "netns", "exec", target.space, "python3", "-c", listen, got)
	if err := ear.Start(); err != nil {
		t.Skipf("no python3: %v", err)
	}
	t.Cleanup(func() { _ = ear.Process.Kill(); _ = ear.Wait() })
	l.waitFor(10*time.Second, "somebody listens", func() bool { _, err := os.Stat(got + ".up"); return err == nil })
	out, diag, code := l.cli(asked, "", "node", "wake", target.name)
	if code != 0 || !strings.Contains(out, "sent from") {
		t.Errorf("exit %d: %s%s", code, out, diag)
	}
	packet := transport.WakePacket(mac)
	for _, n := range rest {
		if !strings.Contains(out, n.name+" (10.77.0.255)") {
			t.Errorf("not from %s: %s", n.name, out)
		}
	}
	l.waitFor(10*time.Second, "three packets from each", func() bool {
		text, _ := os.ReadFile(got)
		for _, n := range rest {
			from, _, _ := strings.Cut(n.peer, ":")
			if strings.Count(string(text), from+" "+hex.EncodeToString(packet)) != 3 {
				return false
			}
		}
		return true
	})
	target.kill(syscall.SIGCONT)
}
