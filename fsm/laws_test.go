package fsm

import (
	"fmt"
	"testing"

	"lanjobs/task"
)

// probes runs random histories and gives f a state with one more command, which f applies alone: same clock, same wall
// clock, same index, so that whatever differs afterwards is the command's doing.
func probes(t *testing.T, f func(w *world, c Command, apply func() (Result, []task.Event))) {
	for seed := range int64(10) {
		w := &world{chooser: seeded(seed), s: New(), level: int(seed) % (Level + 1)}
		for i := range 300 {
			b := w.batch()
			results, _ := w.s.ApplyBatch(uint64(i), b)
			w.learn(b, results)
			c := w.command()
			f(w, c, func() (Result, []task.Event) {
				b := &Batch{Wall: w.s.Wall, Commands: []Command{c}}
				r, e := w.s.ApplyBatch(w.s.Index, b)
				w.learn(b, r)
				return r[0], e
			})
			if err := w.s.Check(); err != nil {
				t.Fatalf("seed %d, entry %d, %T: %v", seed, i, c, err)
			}
		}
	}
}

func TestARefusedCommandChangesNothingAndSaysOnlySo(t *testing.T) {
	refused := map[string]int{}
	probes(t, func(w *world, c Command, apply func() (Result, []task.Event)) {
		before := w.s.Digest()
		r, events := apply()
		no := r.Err != nil
		if c, ok := c.(*Report); ok {
			no = len(r.Codes) == len(c.Reports)
			for _, code := range r.Codes {
				no = no && code != ""
			}
		}
		if !no {
			return
		}
		refused[fmt.Sprintf("%T", c)]++
		if w.s.Digest() != before {
			t.Fatalf("%T %+v was refused (%v) and changed the state", c, c, r.Err)
		}
		for _, e := range events {
			if e.Kind != task.EventLeaseRefuse {
				t.Fatalf("%T %+v was refused (%v) and made an event %+v", c, c, r.Err, e)
			}
		}
	})
	for _, kind := range []string{"*fsm.Grant", "*fsm.Report", "*fsm.Checkpoint", "*fsm.PutState", "*fsm.PutOutput", "*fsm.Renew", "*fsm.RetryJob", "*fsm.CancelJob", "*fsm.SubmitJob", "*fsm.RegisterNode", "*fsm.AdmitNode", "*fsm.SetNode", "*fsm.CreateToken", "*fsm.AdmitClient", "*fsm.RemoveClient",
		"*fsm.FireSchedule", "*fsm.SkipSchedule", "*fsm.SetSchedule", "*fsm.SetQueue", "*fsm.SetJob", "*fsm.ExpireJob", "*fsm.Cursor", "*fsm.SplitShard"} {
		if refused[kind] == 0 {
			t.Errorf("no %s was refused: the histories show nothing about it", kind)
		}
	}
}

func TestARepeatedCommandIsHarmless(t *testing.T) {
	repeated := map[string]int{}
	probes(t, func(w *world, c Command, apply func() (Result, []task.Event)) {
		first, _ := apply()
		switch c := c.(type) {
		case *Grant, *SetNode, *NewGeneration, *Elected, *RemoveToken, *RemoveClient, *Renew, *SkipSchedule:
			return // the leader writes it once, or its repeat is another act
		case *PutState:
			if c.RequestID == "" {
				return
			}
		}
		if first.Err != nil {
			return
		}
		before := w.s.Digest()
		again, events := apply()
		repeated[fmt.Sprintf("%T", c)]++
		if w.s.Digest() != before {
			t.Fatalf("a repeat of %T %+v changed the state", c, c)
		}
		for _, e := range events {
			if e.Kind != task.EventLeaseRefuse {
				t.Fatalf("a repeat of %T %+v made an event %+v", c, c, e)
			}
		}
		if r, ok := c.(*Report); ok {
			for i, code := range first.Codes {
				if code != again.Codes[i] {
					t.Fatalf("a repeated report was answered %v, then %v: %+v", first.Codes, again.Codes, r)
				}
			}
		}
		if again.Err != nil || first.Version != again.Version || first.Job != again.Job {
			t.Fatalf("a repeat of %T was answered %+v, then %+v", c, first, again)
		}
	})
	for _, kind := range []string{"*fsm.Report", "*fsm.Checkpoint", "*fsm.PutState", "*fsm.PutOutput", "*fsm.RetryJob", "*fsm.CancelJob", "*fsm.SubmitJob", "*fsm.RegisterNode", "*fsm.AdmitNode", "*fsm.CreateToken", "*fsm.AdmitClient",
		"*fsm.FireSchedule", "*fsm.SetSchedule", "*fsm.SetQueue", "*fsm.SetJob", "*fsm.ExpireJob", "*fsm.Cursor", "*fsm.SplitShard"} {
		if repeated[kind] == 0 {
			t.Errorf("no %s was repeated: the histories show nothing about it", kind)
		}
	}
}

func TestTwinsAgreeFromEverySnapshotOn(t *testing.T) {
	for seed := range int64(4) {
		w := &world{chooser: seeded(100 + seed), s: New(), level: Level * int(seed%2)}
		var twins []*State // twins[i] was read from a snapshot before entry i+1
		for i := uint64(1); i <= 50; i++ {
			twins = append(twins, reread(t, w.s))
			b := w.batch()
			entry := b.Encode()
			results, events, err := w.s.Apply(i, entry)
			if err != nil {
				t.Fatal(err)
			}
			w.learn(b, results)
			want, digest := withoutPointers(fmt.Sprintf("%+v %+v", texts(results), events)), w.s.Digest()
			for k, twin := range twins {
				r, e, _ := twin.Apply(i, entry)
				if got := withoutPointers(fmt.Sprintf("%+v %+v", texts(r), e)); got != want || twin.Digest() != digest {
					t.Fatalf("seed %d: read from a snapshot before entry %d, a state differs after entry %d (I10):\n%s\n%s", seed, k+1, i, want, got)
				}
			}
		}
	}
}

// TestASnapshotIsWrittenWhileEntriesAreApplied is for the race detector: nothing that Write reads may be written by Apply.
func TestASnapshotIsWrittenWhileEntriesAreApplied(t *testing.T) {
	w := &world{chooser: seeded(5), s: New()}
	for i := range 400 {
		if i%40 == 20 {
			frozen, want := w.s.Snapshot(), w.s.Digest()
			done := make(chan [32]byte)
			go func() { done <- frozen.s.Digest() }()
			defer func() {
				if got := <-done; got != want {
					t.Errorf("the snapshot before entry %d is not what was frozen", i)
				}
			}()
		}
		b := w.batch()
		results, _ := w.s.ApplyBatch(uint64(i), b)
		w.learn(b, results)
	}
}
