package fsm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"lanjobs/task"
)

// machine runs a random history through a state, a twin of it that is now and then restored from its snapshot, and the
// model, and compares the three after each entry.
type machine struct {
	*world
	t     interface{ Fatalf(string, ...any) }
	twin  *State
	model *model
	index uint64
	log   [][]byte
	audit *audit

	frozen     *Snapshot // an earlier moment, and what it looked like then
	frozenSeen [sha256.Size]byte
}

func newMachine(t interface{ Fatalf(string, ...any) }, c chooser) *machine {
	m := &machine{world: &world{chooser: c, s: New()}, t: t, twin: New(), model: newModel(), audit: newAudit()}
	if !m.one(4) { // else its machines are of an older level, and some rules do not hold
		m.level = Level
	}
	m.model.level = m.level
	return m
}

// step applies one entry everywhere.
func (m *machine) step(b *Batch) []Result {
	m.index++
	entry := b.Encode()
	m.log = append(m.log, bytes.Clone(entry))
	results, events, err := m.s.Apply(m.index, entry)
	if err != nil {
		m.t.Fatalf("entry %d: %v", m.index, err)
	}
	results2, events2, _ := m.twin.Apply(m.index, entry)
	if a, b := fmt.Sprintf("%+v %+v", texts(results), events), fmt.Sprintf("%+v %+v", texts(results2), events2); withoutPointers(a) != withoutPointers(b) {
		m.t.Fatalf("entry %d: the twins answer differently (I10):\n%s\n%s", m.index, a, b)
	}
	clear(entry) // a log buffer belongs to Raft: nothing of it may be kept

	m.model.advance(b)
	given, audited := len(m.model.tokens), m.model.audited
	for i, c := range b.Commands {
		ok, answer := m.model.apply(c)
		if have := answerOf(c, results[i]); ok != (results[i].Err == nil) || answer != have && !(have == "" && !ok) {
			m.t.Fatalf("entry %d: %T %+v is answered %v, %q; the model says %v, %q", m.index, c, c, results[i].Err, have, ok, answer)
		}
	}
	m.learn(b, results)
	m.laws(events, given, audited)
	return results
}

// laws are checked after each entry.
func (m *machine) laws(events []task.Event, given, audited int) {
	if err := m.s.Check(); err != nil {
		m.t.Fatalf("after entry %d: %v", m.index, err)
	}
	if err := m.twin.Check(); err != nil {
		m.t.Fatalf("twin after entry %d: %v", m.index, err)
	}
	if err := m.model.compare(m.s); err != nil {
		m.t.Fatalf("after entry %d: %v", m.index, err)
	}
	if m.s.Digest() != m.twin.Digest() {
		m.t.Fatalf("after entry %d the twins differ (I10)", m.index)
	}
	all := m.model.tokens
	for i := max(given, 1); i < len(all); i++ {
		if all[i] <= all[i-1] {
			m.t.Fatalf("entry %d: token %d follows %d (I3)", m.index, all[i], all[i-1])
		}
	}
	refused := 0
	for i, e := range events {
		if e.Index != m.index || e.N != i {
			m.t.Fatalf("entry %d: event %d is numbered %d.%d", m.index, i, e.Index, e.N)
		}
		if e.Kind == task.EventLeaseRefuse {
			refused++
		}
		if err := m.audit.read(e); err != nil {
			m.t.Fatalf("entry %d: %v (R37)", m.index, err)
		}
	}
	if err := m.audit.compare(m.s); err != nil {
		m.t.Fatalf("after entry %d: %v (R37)", m.index, err)
	}
	if want := m.model.audited - audited; refused != want {
		m.t.Fatalf("entry %d: %d stale tokens were refused, the audit log shows %d (I4)", m.index, want, refused)
	}
}

// restore replaces the twin by what its snapshot gives, and freezes the state, once what was frozen before was found unchanged.
func (m *machine) restore() {
	if m.frozen != nil && m.frozen.s.Digest() != m.frozenSeen {
		m.t.Fatalf("a snapshot from before entry %d was changed by later entries", m.index)
	}
	m.frozen, m.frozenSeen = m.s.Snapshot(), m.s.Digest()
	m.twin = reread(m.t, m.twin)
	if m.s.Digest() != m.twin.Digest() {
		m.t.Fatalf("after entry %d: the restored twin differs", m.index)
	}
}

// reread gives the state that a snapshot of s holds.
func reread(t interface{ Fatalf(string, ...any) }, s *State) *State {
	var buf bytes.Buffer
	if err := s.Snapshot().Write(&buf); err != nil {
		t.Fatalf("%v", err)
	}
	out, err := Decode(buf.Bytes())
	if err != nil {
		t.Fatalf("%v", err)
	}
	clear(buf.Bytes())
	return out
}

func texts(rs []Result) (out []string) {
	for _, r := range rs {
		out = append(out, fmt.Sprint(r.Err, r.Tokens, r.TTLs, r.Codes, r.Version, r.Job, r.Existed))
	}
	return out
}

// withoutPointers cuts addresses out of a printed value.
func withoutPointers(s string) string {
	var b bytes.Buffer
	for i := 0; i < len(s); i++ {
		if s[i] == '0' && i+1 < len(s) && s[i+1] == 'x' {
			for i++; i+1 < len(s) && (s[i+1] >= '0' && s[i+1] <= '9' || s[i+1] >= 'a' && s[i+1] <= 'f'); i++ {
			}
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// answerOf is what an answer says beyond yes or no, as the model writes it.
func answerOf(c Command, r Result) string {
	switch c.(type) {
	case *SubmitJob:
		return string(r.Job) + r.Schedule
	case *FireSchedule:
		return string(r.Job)
	case *Cursor:
		if r.Err == nil {
			return fmt.Sprint(r.Range)
		}
	case *Grant, *RegisterNode:
		if r.Err == nil {
			return fmt.Sprint(r.Tokens)
		}
	case *Renew:
		if r.Err == nil {
			return fmt.Sprint(r.TTLs)
		}
	case *Report:
		return fmt.Sprint(r.Codes)
	case *PutState:
		if r.Err == nil {
			return fmt.Sprint(r.Version)
		}
	}
	return ""
}

// drawn is rapid as a chooser.
type drawn struct{ t *rapid.T }

func (d drawn) Intn(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }

func TestEveryHistoryKeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, drawn{t})
		actions := map[string]func(*rapid.T){"restore": func(*rapid.T) { m.restore() }}
		for _, k := range kinds {
			for n := range k.weight {
				actions[k.name+strconv.Itoa(n)] = func(*rapid.T) {
					cs := []Command{k.make(m.world)}
					for m.one(3) {
						cs = append(cs, m.command())
					}
					m.step(m.batch(cs...))
				}
			}
		}
		t.Repeat(actions)
	})
}

// TestLongHistoriesKeepTheLaws goes deeper than rapid does: hundreds of entries each. FSM_SEED runs one history, FSM_RUNS so many.
func TestLongHistoriesKeepTheLaws(t *testing.T) {
	first, runs := int64(1), 12
	if testing.Short() {
		runs = 4
	}
	if v := os.Getenv("FSM_RUNS"); v != "" {
		runs, _ = strconv.Atoi(v)
	}
	if v := os.Getenv("FSM_SEED"); v != "" {
		first, _ = strconv.ParseInt(v, 10, 64)
		runs = 1
	}
	for seed := first; seed < first+int64(runs); seed++ {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, seeded(seed))
			for range 300 {
				m.step(m.batch())
				if m.one(20) {
					m.restore()
				}
			}
		})
	}
}
