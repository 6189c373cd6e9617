package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/transport/memnet"
)

// fakeLead is a Raft that leads when it is told to. Its channel keeps just the latest value, as raft's does.
type fakeLead struct {
	mu      sync.Mutex
	term    uint64
	leads   bool
	ch      chan bool
	barrier func() raft.Future
}

func (f *fakeLead) set(term uint64, leads bool) {
	f.mu.Lock()
	f.term, f.leads = term, leads
	f.mu.Unlock()
	select {
	case <-f.ch:
	default:
	}
	f.ch <- leads
}

func (f *fakeLead) State() raft.RaftState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leads {
		return raft.Leader
	}
	return raft.Follower
}

func (f *fakeLead) CurrentTerm() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.term
}

func (f *fakeLead) LeaderCh() <-chan bool             { return f.ch }
func (f *fakeLead) Barrier(time.Duration) raft.Future { return f.barrier() }

// answer is a future that ends with err after some time; for ever if that is negative.
type answer struct {
	after time.Duration
	err   error
	never <-chan struct{} // closed at the end of the test
}

func (a answer) Error() error {
	if a.after < 0 {
		<-a.never
		return a.err
	}
	time.Sleep(a.after)
	return a.err
}

// termsOf runs Terms in a bubble with a fake; it ends with the test's body.
func termsOf(t *testing.T, body func(f *fakeLead, terms *Terms)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLead{ch: make(chan bool, 1), barrier: func() raft.Future { return answer{} }}
		terms := &Terms{Raft: f, Clock: memnet.NewClock()}
		body(f, terms)
	})
}

// run starts Terms; stop ends it and waits.
func (t *Terms) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = t.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// Leadership that flaps, with work that is slow to end (consul#3230, nomad PR 6977): terms never overlap, and the last one counts.
func TestTermsNeverOverlap(t *testing.T) {
	termsOf(t, func(f *fakeLead, terms *Terms) {
		var mu sync.Mutex
		var led []uint64
		running := 0
		terms.Lead = func(ctx context.Context, term uint64) {
			mu.Lock()
			running++
			led = append(led, term)
			if running > 1 {
				t.Errorf("term %d began beside another", term)
			}
			mu.Unlock()
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, ErrLeadershipLost) && !errors.Is(err, context.Canceled) {
				t.Errorf("term %d ended with %v", term, err)
			}
			time.Sleep(30 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
		}
		stop := terms.start()
		for i := range uint64(50) {
			f.set(2*i+1, true)
			time.Sleep(time.Duration(i%5) * 20 * time.Millisecond)
			f.set(2*i+2, false)
			time.Sleep(time.Duration(i%3) * 20 * time.Millisecond)
		}
		f.set(1000, true)
		time.Sleep(time.Second)
		mu.Lock()
		if len(led) == 0 || led[len(led)-1] != 1000 || running != 1 {
			t.Errorf("led %v, %d running", led, running)
		}
		mu.Unlock()
		stop()
		if running != 0 {
			t.Error("work outlived Run")
		}
	})
}

// Leadership lost and won again between two looks: the channel says "true" after "true" (raft PR 384).
func TestTermAfterTerm(t *testing.T) {
	termsOf(t, func(f *fakeLead, terms *Terms) {
		var log []string
		terms.Lead = func(ctx context.Context, term uint64) {
			log = append(log, fmt.Sprint("begin ", term))
			<-ctx.Done()
			log = append(log, fmt.Sprint("end ", term))
		}
		f.set(5, true)
		stop := terms.start()
		time.Sleep(time.Second)
		f.set(7, true)
		time.Sleep(time.Second)
		stop()
		if fmt.Sprint(log) != "[begin 5 end 5 begin 7 end 7]" {
			t.Errorf("%v", log)
		}
	})
}

func TestTermWithoutABarrier(t *testing.T) {
	never := make(chan struct{})
	for name, barrier := range map[string]func() raft.Future{
		"refused":       func() raft.Future { return answer{err: raft.ErrLeadershipTransferInProgress} },
		"never answers": func() raft.Future { return answer{after: -1, never: never} },
	} {
		t.Run(name, func(t *testing.T) {
			var end chan struct{}
			termsOf(t, func(f *fakeLead, terms *Terms) {
				end = make(chan struct{})
				f.barrier = func() raft.Future {
					a := barrier().(answer)
					a.never = end
					return a
				}
				stuck := 0
				terms.Lead = func(context.Context, uint64) { t.Error("led without a barrier") }
				terms.Stuck = func(term uint64, err error) {
					stuck++
					if term != 5 || err == nil {
						t.Errorf("stuck in term %d: %v", term, err)
					}
				}
				f.set(5, true)
				stop := terms.start()
				time.Sleep(time.Minute)
				stop()
				close(end)
				synctest.Wait()
				if stuck != 1 {
					t.Errorf("told %d times", stuck)
				}
			})
		})
	}
}

// The barrier was committed, but by then another term had begun.
func TestTermThatEndedDuringItsBarrier(t *testing.T) {
	termsOf(t, func(f *fakeLead, terms *Terms) {
		f.barrier = func() raft.Future { return answer{after: time.Second} }
		var led []uint64
		terms.Lead = func(ctx context.Context, term uint64) {
			led = append(led, term)
			<-ctx.Done()
		}
		f.set(5, true)
		stop := terms.start()
		time.Sleep(900 * time.Millisecond)
		f.set(6, true)
		time.Sleep(5 * time.Second)
		stop()
		if fmt.Sprint(led) != "[6]" {
			t.Errorf("led %v", led)
		}
	})
}

// A change that LeaderCh did not tell is found by looking.
func TestTermsLookForThemselves(t *testing.T) {
	termsOf(t, func(f *fakeLead, terms *Terms) {
		var led []uint64
		terms.Lead = func(ctx context.Context, term uint64) {
			led = append(led, term)
			<-ctx.Done()
		}
		stop := terms.start()
		time.Sleep(time.Second)
		f.mu.Lock()
		f.term, f.leads = 9, true
		f.mu.Unlock()
		time.Sleep(300 * time.Millisecond)
		stop()
		if fmt.Sprint(led) != "[9]" {
			t.Errorf("led %v", led)
		}
	})
}
