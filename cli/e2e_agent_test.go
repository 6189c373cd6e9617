//go:build e2e && linux

package cli_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"lanjobs/task"
)

// TestProcAgentKilled: the guard keeps a task whose agent was killed; an agent that is back within the lease takes it up as the
// same execution, and an end that came while there was no agent is reported by the next one.
func TestProcAgentKilled(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	first := l.submit(l.nodes[0], l.file("reattach", lease(longLease), untilGate))
	second := l.submit(l.nodes[0], l.file("late", lease(longLease), untilGate))
	on := l.node(l.starts("reattach", 1, 20*time.Second)[0].node)
	lateOn := l.node(l.starts("late", 1, 20*time.Second)[0].node)
	execution := l.ledger.of("reattach", "start")[0].exec
	l.renewed(first, longLease)
	l.renewed(second, longLease)

	on.kill(syscall.SIGKILL)
	ticks := l.ledger.count("reattach", "tick")
	l.waitFor(5*time.Second, "the task goes on without its agent", func() bool { return l.ledger.count("reattach", "tick") > ticks+2 })
	on.restart()
	l.waitFor(30*time.Second, "the agent is back", func() bool { return l.status(on).Health == "healthy" })

	lateOn.kill(syscall.SIGKILL)
	l.open("late")
	l.waitFor(10*time.Second, "the task ends without its agent", func() bool { return l.ledger.count("late", "end") == 1 })
	lateOn.restart()
	l.ends(l.nodes[0], second, task.JobSucceeded, 30*time.Second)

	l.open("reattach")
	l.ends(l.nodes[0], first, task.JobSucceeded, 30*time.Second)
	l.ledger.oneStart(t, "reattach", 1)
	l.ledger.oneStart(t, "late", 1)
	if as := l.attempts(l.nodes[0], first); len(as) != 1 || string(as[0].Execution) != execution || as[0].State != "succeeded" {
		t.Errorf("attempts %+v, want one of %s", as, execution)
	}
	if lost := l.events(l.nodes[0], first, "lease.expire"); len(lost) > 0 {
		t.Errorf("expired: %+v", lost)
	}
}

// TestProcAgentFrozen: the guard stops a task before the lease that its frozen agent cannot renew ends; another node goes on after
// the last checkpoint whose save was acknowledged. Thawed, the agent changes nothing.
func TestProcAgentFrozen(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("frozen", lease(shortLease), steps))
	on := l.node(l.starts("frozen", 1, 20*time.Second)[0].node)
	l.waitFor(20*time.Second, "some checkpoints", func() bool { return l.ledger.count("frozen", "saved") >= 5 })
	on.kill(syscall.SIGSTOP)
	away := l.others(on)
	l.starts("frozen", 2, 60*time.Second)
	l.resumed("frozen", on.name)
	on.kill(syscall.SIGCONT)
	l.waitFor(20*time.Second, "the thawed node is back", func() bool { return l.status(on).Health == "healthy" })
	l.open("frozen")
	l.ends(away[0], id, task.JobSucceeded, 30*time.Second)
	l.ledger.noOverlap(t, "frozen")
	l.ledger.oneStart(t, "frozen", 2)
	if ex := l.events(away[0], id, "lease.expire"); len(ex) != 1 {
		t.Errorf("%d expiries, want 1: %+v", len(ex), ex)
	}
}

// resumed checks the second attempt of a job of steps: elsewhere, and from the last checkpoint acknowledged to the first.
func (l *lab) resumed(job, first string) {
	l.t.Helper()
	starts := l.ledger.of(job, "start")
	last := 0
	for _, e := range l.ledger.of(job, "saved") {
		if e.exec == starts[0].exec {
			last, _ = strconv.Atoi(e.note)
		}
	}
	from, _ := strconv.Atoi(starts[1].note)
	// One more may have been committed whose answer never reached the task.
	if from < last || from > last+1 {
		l.t.Errorf("%s resumed at %d, the last acknowledged checkpoint was %d", job, from, last)
	}
	if starts[1].node == first {
		l.t.Errorf("%s began again on %s", job, first)
	}
}

// TestProcAgentAndGuardFrozen: with both frozen nobody on the machine can stop the task. At the thaw it is dead at once, and what
// it did since has no effect.
func TestProcAgentAndGuardFrozen(t *testing.T) {
	t.Parallel()
	l := cluster(t)
	id := l.submit(l.nodes[0], l.file("asleep", lease(shortLease), steps))
	on := l.node(l.starts("asleep", 1, 20*time.Second)[0].node)
	l.waitFor(20*time.Second, "some checkpoints", func() bool { return l.ledger.count("asleep", "saved") >= 3 })
	guard := on.guard()
	l.signal(syscall.SIGSTOP, guard, on.pid())
	starts := l.starts("asleep", 2, 60*time.Second)
	old := starts[0].exec
	thawed := l.ledger.mark(t)
	l.signal(syscall.SIGCONT, guard, on.pid())
	l.waitFor(10*time.Second, "the old task is dead", func() bool { return len(on.tasks()) == 0 })
	l.ledger.soonDead(t, thawed, "asleep", old)
	for _, e := range l.ledger.of("asleep", "saved") {
		if e.exec == old && e.at.After(starts[1].at) {
			t.Errorf("a save of the old execution was accepted after the new one began: %+v", e)
		}
	}
	l.open("asleep")
	l.ends(l.others(on)[0], id, task.JobSucceeded, 30*time.Second)
	if n := l.ledger.count("asleep", "end"); n != 1 {
		t.Errorf("%d executions ended well", n)
	}
	l.ledger.oneStart(t, "asleep", 2)
}

// TestProcGuardKilled: a guard's death takes its tasks along and costs no attempt; the work goes on under a new guard.
func TestProcGuardKilled(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	id := l.submit(l.nodes[0], l.file("orphan", lease(longLease)+"\nretry: {attempts: 1}", steps))
	l.starts("orphan", 1, 20*time.Second)
	l.waitFor(20*time.Second, "a checkpoint", func() bool { return l.ledger.count("orphan", "saved") >= 2 })
	old := l.nodes[0].guard()
	l.signal(syscall.SIGKILL, old)
	l.starts("orphan", 2, 30*time.Second)
	l.ledger.noOverlap(t, "orphan")
	if l.nodes[0].guard() == old {
		t.Error("the dead guard is still there")
	}
	l.open("orphan")
	l.ends(l.nodes[0], id, task.JobSucceeded, 30*time.Second)
	as := l.attempts(l.nodes[0], id)
	if len(as) != 2 || as[0].Counted {
		t.Errorf("attempts %+v: want two, the first not counted", as)
	}
}
