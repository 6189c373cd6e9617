package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// wire is a node's way to the granter, with the faults of a network. It implements Control.
type wire struct {
	g      *granter
	id     task.NodeID
	m      *machine
	flying sync.WaitGroup
	seed   *rand.Rand // guarded by mu, like all below

	mu                sync.Mutex
	minDelay, delay   time.Duration // one way: minDelay plus up to delay
	lossOut, lossBack float64
	double            float64       // requests that arrive twice
	reset             time.Duration // how soon a lost leg is noticed; 0 = never
	cutOut, cutBack   bool
	renewGate         func() bool // false: this renewal's reply is lost
}

func (l *wire) set(f func(*wire)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// toss draws the fate of one leg.
func (l *wire) toss(out bool) (delay time.Duration, lost, twice bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delay = l.minDelay
	if l.delay > 0 {
		delay += time.Duration(l.seed.Int64N(int64(l.delay)))
	}
	loss, cut := l.lossBack, l.cutBack
	if out {
		loss, cut = l.lossOut, l.cutOut
	}
	return delay, cut || l.seed.Float64() < loss, out && l.seed.Float64() < l.double
}

// call makes one call over a wire. A request that was written arrives even if the caller gives up meanwhile; a lost leg
// looks to the caller like no answer.
func call[T any](ctx context.Context, l *wire, apply func(context.Context) (T, error)) (T, error) {
	type result struct {
		reply T
		err   error
	}
	var none T
	if !l.m.gate(ctx) {
		return none, ctx.Err()
	}
	back := make(chan result, 1)
	l.flying.Go(func() {
		delay, lost, twice := l.toss(true)
		time.Sleep(delay)
		if lost {
			l.resetting(func() { back <- result{err: task.ErrNoLeader} })
			return
		}
		var r result
		r.reply, r.err = apply(ctx)
		if twice {
			r.reply, r.err = apply(ctx)
		}
		delay, lost, _ = l.toss(false)
		time.Sleep(delay)
		switch {
		case lost:
			l.resetting(func() { back <- result{err: task.ErrNoLeader} })
		case l.m.gate(ctx):
			back <- r
		}
	})
	select {
	case r := <-back:
		return r.reply, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// resetting tells the caller of a lost leg, on a network where the connection breaks.
func (l *wire) resetting(tell func()) {
	l.mu.Lock()
	reset := l.reset
	l.mu.Unlock()
	if reset > 0 {
		time.Sleep(reset)
		tell()
	}
}

func (l *wire) Register(ctx context.Context, r *transport.RegisterRequest) (*transport.RegisterReply, error) {
	return call(ctx, l, func(context.Context) (*transport.RegisterReply, error) { return l.g.register(l.id, r) })
}

func (l *wire) Poll(ctx context.Context, r *transport.PollRequest) (*transport.PollReply, error) {
	return call(ctx, l, func(ctx context.Context) (*transport.PollReply, error) { return l.g.poll(ctx, l.id, r) })
}

func (l *wire) Renew(ctx context.Context, r *transport.RenewRequest) (*transport.RenewReply, error) {
	reply, err := call(ctx, l, func(context.Context) (*transport.RenewReply, error) { return l.g.renew(l.id, r) })
	l.mu.Lock()
	gate := l.renewGate
	l.mu.Unlock()
	if gate != nil && !gate() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return reply, err
}

func (l *wire) Report(ctx context.Context, r *transport.ReportRequest) (*transport.ReportReply, error) {
	return call(ctx, l, func(context.Context) (*transport.ReportReply, error) { return l.g.report(l.id, r) })
}

func (l *wire) Do(ctx context.Context, method transport.Method, request, reply any) error {
	_, err := call(ctx, l, func(context.Context) (struct{}, error) {
		return struct{}{}, l.g.do(l.id, method, request, reply)
	})
	return err
}

// memStore is a Store in memory.
type memStore struct {
	mu   sync.Mutex
	data map[string][]byte
	puts int
	err  error
}

func (s *memStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *memStore) Put(records map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.puts++
	for k, v := range records {
		s.data[k] = v
	}
	return nil
}

func (s *memStore) Delete(keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		delete(s.data, k)
	}
	return s.err
}

func (s *memStore) All() (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]byte{}
	for k, v := range s.data {
		out[k] = v
	}
	return out, s.err
}

// node is one machine with its runner, its wire and the agent of the moment.
type node struct {
	*machine
	*wire
	r           *fakeRunner
	store       *memStore
	slots       int
	clock       task.Clock // what the agent is given: the machine's own
	control     Control    // the wire
	awake       *fakeAwake
	incarnation uint64
	w           *Worker
	agent       atomic.Pointer[Worker] // w while it runs
	bouncing    atomic.Bool
	stop        context.CancelFunc
	ended       chan error
}

// lab is a granter with nodes, inside a bubble.
type lab struct {
	t     *testing.T
	g     *granter
	nodes []*node
	stop  chan struct{}
	wg    sync.WaitGroup
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, g: newGranter(), stop: make(chan struct{})}
	l.every(100*time.Millisecond, l.g.tend)
	return l
}

// every runs f in true time until the lab closes.
func (l *lab) every(d time.Duration, f func()) {
	l.wg.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-l.stop:
				return
			}
		}
	})
}

// node adds a machine whose agent runs.
func (l *lab) node(slots int, rate float64, plan func(a *task.Assignment) work) *node {
	n := l.bareNode(slots, rate, plan)
	n.start()
	return n
}

func (l *lab) bareNode(slots int, rate float64, plan func(a *task.Assignment) work) *node {
	m := newMachine(rate)
	id := task.NodeID(fmt.Sprintf("node-%d", len(l.nodes)))
	n := &node{machine: m, slots: slots, r: newFakeRunner(m, plan), store: &memStore{data: map[string][]byte{}}, awake: &fakeAwake{}, clock: m}
	n.wire = &wire{g: l.g, id: id, m: m, seed: rand.New(rand.NewPCG(uint64(len(l.nodes)), 7)), minDelay: time.Millisecond}
	n.control = n.wire
	l.nodes = append(l.nodes, n)
	return n
}

// start begins the node's next agent.
func (n *node) start() {
	n.incarnation++
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("LANJOBS_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", n.id, "slots", n.slots)
	}
	n.w = New(Config{NodeInfo: func() task.NodeInfo { return task.NodeInfo{ID: n.id, Slots: n.slots} }, Incarnation: n.incarnation,
		Clock: n.clock, Control: n.control, Store: n.store, Awake: n.awake, Log: log})
	n.w.Attach(n.r)
	ctx, cancel := context.WithCancel(context.Background())
	n.stop, n.ended = cancel, make(chan error, 1)
	w, ended := n.w, n.ended
	n.agent.Store(w)
	go func() { ended <- w.Run(ctx) }()
}

// kill ends the agent and leaves its tasks.
func (n *node) kill() error {
	if n.stop == nil {
		return nil
	}
	n.agent.Store(nil)
	n.stop()
	err := <-n.ended
	n.stop = nil
	return errors.Join(err, n.w.book.recount())
}

// recount compares the counts of what is live with the attempts themselves.
func (b *book) recount() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	live, finishing := 0, 0
	for _, a := range b.attempts {
		if a.live() {
			live++
			if a.onSleep == task.OnSleepFinish {
				finishing++
			}
		}
	}
	if live != b.live || finishing != b.finishing {
		return fmt.Errorf("%d live and %d of them to be finished, counted %d and %d", live, finishing, b.live, b.finishing)
	}
	return nil
}

// bounce kills the agent; the returned function starts the next. Of two at once only one does anything.
func (n *node) bounce() (up func()) {
	if !n.bouncing.CompareAndSwap(false, true) {
		return func() {}
	}
	if err := n.kill(); err != nil {
		panic(err)
	}
	return func() {
		n.r.newAgent()
		n.start()
		n.bouncing.Store(false)
	}
}

func (n *node) restart() { n.bounce()() }

// close ends everything; a goroutine left behind fails the bubble.
func (l *lab) close() {
	close(l.stop)
	l.wg.Wait()
	for _, n := range l.nodes {
		n.machine.resume()
		if err := n.kill(); err != nil {
			l.t.Error(err)
		}
		n.r.close()
		n.flying.Wait()
	}
	if l.g.early > 0 {
		l.t.Errorf("%d report requests before the registration", l.g.early)
	}
}

// until waits for a condition in true time.
func (l *lab) until(limit time.Duration, what string, ok func() bool) {
	l.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("not within %v: %s; %v", limit, what, l.g.tally())
		}
	}
	synctest.Wait()
}

// sleep lets true time pass, and then everything that it set off come to rest, so that the test may look at it.
func (l *lab) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (l *lab) succeeded(n int) func() bool {
	return func() bool { return l.g.tally()[task.ShardSucceeded] == n }
}

// instant, lasting and endless are plans.
func instant(*task.Assignment) work { return work{} }
func endless(*task.Assignment) work { return work{takes: -1} }
func lasting(d time.Duration) func(*task.Assignment) work {
	return func(*task.Assignment) work { return work{takes: d} }
}
