package node

import (
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/runner"
	"lanjobs/transport"
)

// bareMachine is a machine of a cluster without network and Raft, whose ledger has applied some commands.
func bareMachine(t *testing.T, cmds ...fsm.Command) *machine {
	t.Helper()
	id, err := transport.NewIdentity("here")
	if err != nil {
		t.Fatal(err)
	}
	id.Cluster.Name = "home"
	m := &machine{identity: id, clock: runner.SystemClock(), log: slog.New(slog.DiscardHandler), outed: make(chan struct{})}
	if err := m.openNetwork(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	l := newLedger(m.log, m.clock, func([]task.Event) {}, func() error { return nil }, func(uint64) {})
	for i, c := range cmds {
		r, ok := l.Apply(&raft.Log{Index: uint64(i + 1), Type: raft.LogCommand, Data: (&fsm.Batch{Commands: []fsm.Command{c}}).Encode()}).([]fsm.Result)
		if !ok || r[0].Err != nil {
			t.Fatalf("%T: %v", c, r)
		}
	}
	m.core = &Core{ledger: l}
	m.built.Store(m.core)
	return m
}

func TestAStreamOfARemovedNodeIsRefused(t *testing.T) {
	m := bareMachine(t, &fsm.InitCluster{ID: "c", Name: "home"}, &fsm.AdmitNode{Node: "in", Name: "in"}, &fsm.AdmitNode{Node: "out", Name: "out"},
		&fsm.SetNode{Node: "out", Action: fsm.NodeRemove})
	if m.layer.Admit == nil {
		t.Fatal("nobody is refused")
	}
	if err := m.layer.Admit("in", transport.Session{}); err != nil {
		t.Errorf("a member is refused: %v", err)
	}
	if err := m.layer.Admit("out", transport.Session{}); !errors.Is(err, transport.ErrRemoved) {
		t.Errorf("a removed node: %v", err)
	}
}

// Only another node that says it of this one counts: this node's own refusals of others are the same error.
func TestWhoIsToldThatItWasRemoved(t *testing.T) {
	for _, c := range []struct {
		name   string
		by, to string
		reason error
		out    bool
	}{
		{"told by a member", "a", "", transport.ErrRemoved, true},
		{"told by a member, with more words", "a", "", errors.Join(transport.ErrRemoved, errors.New("at 7")), true},
		{"refuses a removed one itself", "", "a", transport.ErrRemoved, false},
		{"of another cluster", "a", "", transport.ErrWrongCluster, false},
		{"a node that starts", "a", "", transport.ErrNotRunning, false},
		{"about a third", "a", "b", transport.ErrRemoved, false},
	} {
		m := bareMachine(t)
		if m.layer.Refused == nil {
			t.Fatal("nobody hears of refusals")
		}
		r := &transport.Refusal{By: task.NodeID(c.by), To: task.NodeID(c.to), Reason: c.reason}
		if c.by == "" {
			r.By = m.identity.NodeID
		}
		if c.to == "" {
			r.To = m.identity.NodeID
		}
		m.layer.Refused(r)
		m.layer.Refused(r) // each dial brings it again
		select {
		case <-m.outed:
			if !c.out {
				t.Errorf("%s: put out", c.name)
			}
		default:
			if c.out {
				t.Errorf("%s: not put out", c.name)
			}
		}
		said := strings.Join(m.notices(), "\n")
		if c.out != strings.Contains(said, "This machine was removed from \"home\", says a.") || c.out != strings.Contains(said, "lanjobs join MACHINE --replace") {
			t.Errorf("%s: status says %q", c.name, said)
		}
	}
}

func TestAMachineThatIsOutAsksNobody(t *testing.T) {
	m := bareMachine(t)
	c := &control{out: m.outError, known: func() task.NodeID { return "leader" }, caller: m.caller}
	if err := c.Do(t.Context(), transport.MethodPing, nil, nil); !errors.Is(err, task.ErrNoLeader) {
		t.Errorf("before: %v", err)
	}
	m.putOut(task.NewProblem(task.ErrNotAllowed, "Put out.", ""))
	if err := c.Do(t.Context(), transport.MethodPing, nil, nil); !errors.Is(err, task.ErrNotAllowed) {
		t.Errorf("after: %v", err)
	}
}

func TestNotices(t *testing.T) {
	var tr trouble
	if len(tr.sentences()) > 0 || tr.note(aboutUDP, "") {
		t.Error("nothing is news")
	}
	if !tr.note(aboutUDP, "No UDP.") || tr.note(aboutUDP, "No UDP.") || !tr.note(aboutCopy, "A copy.") {
		t.Error("news are not told from what is known")
	}
	if !tr.puts(task.NewProblem(task.ErrConflict, "Out.", "Help.")) || tr.puts(task.NewProblem(task.ErrConflict, "Another.", "")) {
		t.Error("not only the first reason counts")
	}
	if got := tr.sentences(); !slices.Equal(got, []string{"Out. Help.", "A copy.", "No UDP."}) {
		t.Errorf("said %q", got)
	}
	if !tr.note(aboutUDP, "") || len(tr.sentences()) != 2 {
		t.Error("what has ended is still said")
	}
}

// A node that has nobody to come back to is told what to do, and nothing of it is touched.
func TestALostLogOfALoneMachine(t *testing.T) {
	cfg := DefaultConfig()
	cfg.DataDir, cfg.Name, cfg.Listen = filepath.Join(t.TempDir(), "data"), "here", "127.0.0.1:0"
	if _, err := CreateCluster(cfg, "home"); err != nil {
		t.Fatal(err)
	}
	before, err := transport.LoadIdentity(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	lost := &AmnesiaError{Reason: ReasonDamaged, Detail: "torn", Dir: "raft"}
	_, again := rejoin(t.Context(), cfg, lost)
	if !errors.Is(again, errNobodyElse) {
		t.Fatalf("rejoined: %v", again)
	}
	told := explainLoss(cfg, lost, again)
	if p, ok := errors.AsType[*task.Problem](told); !ok || !strings.Contains(p.Hint, "lanjobs leave --force") || !strings.Contains(p.Hint, "lanjobs backup restore") || !strings.Contains(p.Detail, "torn") {
		t.Errorf("told %+v", told)
	}
	if p, _ := errors.AsType[*task.Problem](explainLoss(cfg, lost, errors.New("nobody answers"))); !strings.Contains(p.Hint, "nobody answers") || !strings.Contains(p.Hint, "--replace") {
		t.Errorf("told %+v", p)
	}
	after, err := transport.LoadIdentity(cfg.DataDir)
	if err != nil || after.NodeID != before.NodeID {
		t.Errorf("it is %v now, %v", after, err)
	}
}

// Who asks for a new id must be a member, and the id new: nobody takes another's place.
func TestWhoMayComeBackAsANewMember(t *testing.T) {
	m := bareMachine(t, &fsm.InitCluster{ID: "c", Name: "home"}, &fsm.AdmitNode{Node: "in", Name: "in"}, &fsm.AdmitNode{Node: "out", Name: "out"},
		&fsm.SetNode{Node: "out", Action: fsm.NodeRemove})
	for _, c := range []struct{ from, id task.NodeID }{{"out", "new"}, {"stranger", "new"}, {"in", "in"}, {"in", "out"}} {
		if _, err := m.rejoinHere(t.Context(), c.from, &transport.RejoinRequest{Info: task.NodeInfo{ID: c.id}}); err == nil || errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s may be %s: %v", c.from, c.id, err)
		}
	}
	if _, err := m.rejoinHere(t.Context(), "in", &transport.RejoinRequest{Info: task.NodeInfo{ID: "new"}, CSR: "none"}); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("without a key: %v", err)
	}
}
