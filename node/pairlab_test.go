package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

// pairLab is a member with the leader's desk behind it and machines that want to be let in, all with their real TLS and HTTP, on
// a network in memory and in virtual time.
type pairLab struct {
	t     *testing.T
	net   *memnet.Network
	clock *memnet.Clock
	info  transport.ClusterInfo
	ca    *transport.CA
	stop  []func()

	mu     sync.Mutex
	desk   *pairDesk
	leads  bool
	tokens []*fsm.CreateToken
	fail   error // of the next commit
	tooOld error // why a member cannot apply logins
	unled  int   // so many logins are answered as by a member that knows no leader
}

// pairing runs a test in a lab.
func pairing(t *testing.T, test func(t *testing.T, l *pairLab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pairLab{t: t, net: memnet.New(), clock: memnet.NewClock(), leads: true}
		l.info, l.ca = l.cluster("home")
		l.desk = l.newDesk()
		l.serve("mini-1", l.info, l.ca, func(ctx context.Context, q transport.PairRequest, remote string) (transport.PairReply, error) {
			return l.at().Ask(ctx, q, remote)
		})
		test(t, l)
		for _, stop := range l.stop {
			stop()
		}
		l.net.Close()
		time.Sleep(time.Minute) // what is held ends by its own time
	})
}

func (l *pairLab) cluster(name string) (transport.ClusterInfo, *transport.CA) {
	info, ca, err := transport.NewCluster(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return info, ca
}

// newDesk is that of a leader who was just elected.
func (l *pairLab) newDesk() *pairDesk {
	return &pairDesk{
		clock: l.clock, log: silent, waiting: map[string]*applicant{}, news: make(chan struct{}), comparing: make(chan struct{}, 1),
		leads:   func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.leads },
		cluster: func() (string, transport.Fingerprint, error) { return "home", l.ca.Fingerprint(), nil },
		nameFree: func(i task.NodeInfo) error {
			if i.Name == "mini-1" {
				return task.NewProblem(task.ErrConflict, `"home" already has a machine called "mini-1"`, "--node-name NAME")
			}
			return nil
		},
		tooNew: func(fsm.Command) error { l.mu.Lock(); defer l.mu.Unlock(); return l.tooOld },
		propose: func(_ context.Context, c fsm.Command) (fsm.Result, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if err := l.fail; err != nil {
				l.fail = nil
				return fsm.Result{}, err
			}
			l.tokens = append(l.tokens, c.(*fsm.CreateToken))
			return fsm.Result{}, nil
		},
	}
}

func (l *pairLab) at() *pairDesk {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.desk
}

// elect puts an empty desk in the place of the leader's.
func (l *pairLab) elect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.desk = l.newDesk()
}

// serve opens a machine's port; what answers /v1/pair there is given.
func (l *pairLab) serve(name string, info transport.ClusterInfo, ca *transport.CA, ask func(context.Context, transport.PairRequest, string) (transport.PairReply, error)) {
	l.t.Helper()
	i, err := transport.NewIdentity(name)
	if err != nil {
		l.t.Fatal(err)
	}
	csr, err := i.CSR()
	if err != nil {
		l.t.Fatal(err)
	}
	cert, err := ca.Issue(csr, i.NodeID)
	if err == nil {
		err = i.Adopt(info, cert)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	trust, err := transport.NewTrust(i, l.clock, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	host := l.net.Host(task.NodeID(name))
	host.Move(name + ":7420")
	mux := transport.NewMux(transport.MuxConfig{Listener: host.Listen("tcp"), Trust: trust, Limits: transport.DefaultMuxLimits(), Clock: l.clock, Log: silent})
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = mux.Run(ctx) })
	parts.Go(func() {
		_ = transport.Serve(ctx, mux, transport.Services{API: http.NotFoundHandler(), Pair: transport.PairHandler(ask), Login: transport.LoginHandler(l.admit), Clock: l.clock, Log: silent})
	})
	l.stop = append(l.stop, func() { cancel(); parts.Wait() })
	synctest.Wait()
}

// stranger is a machine that waits to be let in.
type stranger struct {
	id     task.NodeID
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	codes  []string
	said   []string
	grant  *transport.PairGrant
	access *transport.Access // of a person
	err    error
}

// join lets a machine ask at peer, from an address of its own.
func (l *pairLab) join(name, peer string) *stranger { l.t.Helper(); return l.joinAs(name, name, peer) }

// joinAs is join from a host of another name.
func (l *pairLab) joinAs(name, from, peer string) *stranger {
	l.t.Helper()
	i, err := transport.NewIdentity(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.stranger(i.NodeID, func(ctx context.Context, s *stranger) {
		grant, err := transport.Pair(ctx, transport.PairConfig{Show: s.show, Say: s.say,
			JoinConfig: transport.JoinConfig{Peer: peer, Identity: i, Clock: l.clock, Net: l.from(from),
				Info: task.NodeInfo{ID: i.NodeID, Name: name, OS: "windows", Arch: "amd64", Version: "1.4.0", Voter: true}}})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.grant, s.err = grant, err
	})
}

// from is how a host connects.
func (l *pairLab) from(name string) transport.NetDial {
	host := l.net.Host(task.NodeID(name))
	if host.Addr() == "" {
		host.Move(name + ":9999")
	}
	return func(ctx context.Context, addr string) (net.Conn, error) { return host.DialAddr(ctx, addr, "tcp") }
}

// stranger starts somebody who asks, until the lab ends.
func (l *pairLab) stranger(id task.NodeID, ask func(context.Context, *stranger)) *stranger {
	ctx, cancel := context.WithCancel(context.Background())
	s := &stranger{id: id, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		ask(ctx, s)
	}()
	l.stop = append(l.stop, func() { cancel(); <-s.ended })
	time.Sleep(time.Second)
	return s
}

func (s *stranger) show(code transport.PairCode, _ time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes = append(s.codes, code.String())
}

func (s *stranger) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

// code is the one that is shown now.
func (s *stranger) code(t *testing.T) transport.PairCode {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.codes) == 0 {
		t.Fatalf("no code is shown: %v", s.err)
	}
	code, err := transport.ParsePairCode(s.codes[len(s.codes)-1])
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// heard tells whether something was said that has some words.
func (s *stranger) heard(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.said, "\n"), words)
}

// outcome waits for the end.
func (s *stranger) outcome() (*transport.PairGrant, error) {
	<-s.ended
	return s.grant, s.err
}

var requests int

// check types a code on a member.
func (l *pairLab) check(code transport.PairCode) (*transport.PairingView, error) {
	requests++
	return l.at().Check(l.t.Context(), code, task.RequestID(fmt.Sprint("r", requests)))
}

// refused fails unless an error is a problem of a kind with some words.
func refused(t *testing.T, err, kind error, words string) {
	t.Helper()
	p, ok := errors.AsType[*task.Problem](err)
	if !ok || !errors.Is(err, kind) || !strings.Contains(p.Detail+" "+p.Hint, words) {
		t.Errorf("%v, want %v with %q", err, kind, words)
	}
}

// wrongCode is not the one that a machine shows.
func wrongCode(code transport.PairCode) transport.PairCode {
	last := code[len(code)-1]
	other := byte('0')
	if last == '0' {
		other = '1'
	}
	return code[:len(code)-1] + transport.PairCode(other)
}

// interceptor stands between a machine and the cluster with an authority of its own, and passes on what it likes.
func (l *pairLab) interceptor(name string, reply func(*transport.PairReply)) {
	info, ca := l.cluster("home")
	l.serve(name, info, ca, l.bent(nil, reply))
}

// bent is a member's way to the desk that alters what passes.
func (l *pairLab) bent(request func(*transport.PairRequest), reply func(*transport.PairReply)) func(context.Context, transport.PairRequest, string) (transport.PairReply, error) {
	return func(ctx context.Context, q transport.PairRequest, remote string) (transport.PairReply, error) {
		if request != nil {
			request(&q)
		}
		r, err := l.at().Ask(ctx, q, remote)
		r.Share, r.Proof, r.Sealed = slices.Clone(r.Share), slices.Clone(r.Proof), slices.Clone(r.Sealed)
		if reply != nil {
			reply(&r)
		}
		return r, err
	}
}

// swap alters a message, if there is one.
func swap(b []byte) {
	if len(b) > 0 {
		b[0] ^= 1
	}
}
