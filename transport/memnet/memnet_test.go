package memnet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"lanjobs/task"
	"lanjobs/transport"
	"lanjobs/transport/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stream opens a stream from a to b and gives both ends.
func stream(t *testing.T, n *memnet.Network, a, b task.NodeID) (near, far net.Conn) {
	t.Helper()
	ln := n.Host(b).Listen("test")
	near, err := n.Host(a).Dial(t.Context(), b, "test")
	if err != nil {
		t.Fatal(err)
	}
	far, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

// write writes and must succeed.
func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

// readWithin reads what has come after at most d.
func readWithin(c net.Conn, d time.Duration) (string, error) {
	buf := make([]byte, 100)
	_ = c.SetReadDeadline(time.Now().Add(d))
	n, err := c.Read(buf)
	return string(buf[:n]), err
}

func TestStreamKeepsWhatACutHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		near, far := stream(t, n, "a", "b")
		n.CutOneWay("a", "b")
		write(t, near, "late")
		if got, err := readWithin(far, time.Minute); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read %q, %v through a cut", got, err)
		}
		write(t, far, "other way")
		if got, err := readWithin(near, time.Second); got != "other way" {
			t.Fatalf("the open direction gave %q, %v", got, err)
		}
		n.Heal()
		if got, err := readWithin(far, time.Second); got != "late" {
			t.Fatalf("after the heal: %q, %v", got, err)
		}
	})
}

func TestStreamEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		n.Delay("a", "b", 300*time.Millisecond)
		start := time.Now()
		near, far := stream(t, n, "a", "b")
		if d := time.Since(start); d != 600*time.Millisecond {
			t.Errorf("dial took %s, not a round trip", d)
		}
		write(t, near, "last words")
		near.Close()
		got, err := io.ReadAll(far)
		if string(got) != "last words" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if d := time.Since(start); d != 900*time.Millisecond {
			t.Errorf("arrived after %s", d)
		}
		if _, err := far.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed stream: %v", err)
		}
	})
}

func TestWriterWaitsForAFullWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		near, far := stream(t, n, "a", "b")
		n.Cut("a", "b")
		_ = near.SetWriteDeadline(time.Now().Add(time.Second))
		sent, err := near.Write(make([]byte, 1<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) || sent == 0 || sent == 1<<20 {
			t.Fatalf("wrote %d, %v into a cut stream", sent, err)
		}
		n.Heal()
		if got, err := io.ReadFull(far, make([]byte, sent)); err != nil {
			t.Errorf("%d of %d bytes came: %v", got, sent, err)
		}
	})
}

func TestFrozenHostTakesConnectionsAndAnswersAfterThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		ln := n.Host("b").Listen("test")
		n.Freeze("b")
		near, err := n.Host("a").Dial(t.Context(), "b", "test")
		if err != nil {
			t.Fatal("the kernel of a frozen process accepts, but:", err)
		}
		far, _ := ln.Accept()
		write(t, near, "ping")
		if got, err := readWithin(far, time.Minute); err == nil {
			t.Fatalf("frozen host read %q", got)
		}
		n.Thaw("b")
		if got, err := readWithin(far, time.Second); got != "ping" {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

func TestBlackHoleLosesStreamsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		near, far := stream(t, n, "a", "b")
		n.BlackHole("b")
		write(t, near, "gone")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := n.Host("a").Dial(ctx, "b", "test"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial into a black hole: %v", err)
		}
		n.Restore("b")
		if got, err := readWithin(far, time.Minute); err == nil {
			t.Errorf("read %q from a lost stream", got)
		}
		if _, err := near.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write to a lost stream: %v", err)
		}
	})
}

func TestKilledHostResetsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		near, _ := stream(t, n, "a", "b")
		n.Kill("b")
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		if _, err := n.Host("a").Dial(t.Context(), "b", "test"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
	})
}

func TestDialByAddressFollowsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		b, c := n.Host("b"), n.Host("c")
		b.Move("10.0.0.1:1")
		b.Listen("test")
		c.Listen("test")
		b.Move("10.0.0.2:1")
		c.Move("10.0.0.1:1") // DHCP gave b's old address to c
		for addr, want := range map[string]task.NodeID{"10.0.0.1:1": "c", "10.0.0.2:1": "b"} {
			conn, err := n.Host("a").DialAddr(t.Context(), addr, "test")
			if err != nil {
				t.Fatal(err)
			}
			if got := conn.(transport.Identified).PeerID(); got != want {
				t.Errorf("%s leads to %s, not %s", addr, got, want)
			}
		}
	})
}

func TestDatagramsAreLostOrDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		a, b := n.Host("a"), n.Host("b")
		a.Move("10.0.0.1:7")
		b.Move("10.0.0.2:7")
		from, to := a.ListenPacket(), b.ListenPacket()
		send := func(s string) { _, _ = from.WriteTo([]byte(s), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 7}) }
		n.Cut("a", "b")
		send("lost")
		n.Heal()
		n.Delay("a", "b", time.Second)
		send("slow")
		start := time.Now()
		buf := make([]byte, 10)
		k, addr, err := to.ReadFrom(buf)
		if string(buf[:k]) != "slow" || addr.String() != "10.0.0.1:7" || err != nil || time.Since(start) != time.Second {
			t.Errorf("%q from %v after %s: %v", buf[:k], addr, time.Since(start), err)
		}
	})
}

func TestABroadcastReachesTheLANAndNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		conns := map[string]net.PacketConn{}
		for _, at := range []string{"10.0.0.1:7", "10.0.0.2:7", "10.0.0.3:7", "10.0.0.4:8", "10.0.1.5:7"} {
			h := n.Host(task.NodeID(at))
			h.Move(at)
			conns[at] = h.ListenPacket()
		}
		n.Cut("10.0.0.1:7", "10.0.0.3:7")
		_, _ = conns["10.0.0.1:7"].WriteTo([]byte("all"), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 255), Port: 7})
		var got []string
		for at, c := range conns {
			go func() {
				buf := make([]byte, 10)
				if k, from, err := c.ReadFrom(buf); err == nil && string(buf[:k]) == "all" && from.String() == "10.0.0.1:7" {
					got = append(got, at)
				}
			}()
			synctest.Wait()
		}
		slices.Sort(got)
		if !slices.Equal(got, []string{"10.0.0.1:7", "10.0.0.2:7"}) {
			t.Errorf("heard by %v", got)
		}
	})
}

// echo answers a call with its request, and counts.
type echo struct{ served int }

func (e *echo) ServeCall(ctx context.Context, from task.NodeID, m transport.Method, body []byte) (any, error) {
	e.served++
	if m == "fail" {
		return nil, task.NewProblem(task.ErrStaleToken, "token 5 of "+string(from), "")
	}
	return transport.Ack{Seq: uint64(e.served)}, nil
}

// callWithin calls b from a.
func callWithin(n *memnet.Network, m transport.Method, d time.Duration) (transport.Ack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var reply transport.Ack
	err := n.Caller("a").Call(ctx, "b", m, transport.Ack{}, &reply)
	return reply, err
}

func TestCallsObeyTheFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		if _, err := callWithin(n, "x", time.Second); !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("nobody serves: %v", err)
		}
		h := &echo{}
		n.Serve("b", h)
		if r, err := callWithin(n, "x", time.Second); err != nil || r.Seq != 1 {
			t.Errorf("%v, %v", r, err)
		}
		if _, err := callWithin(n, "fail", time.Second); !errors.Is(err, task.ErrStaleToken) {
			t.Errorf("the far side's error: %v", err)
		}

		n.CutOneWay("b", "a") // the answer is lost, the request is not
		if _, err := callWithin(n, "x", time.Second); !errors.Is(err, task.ErrNoLeader) || h.served != 3 {
			t.Errorf("answer cut off: %v, served %d", err, h.served)
		}
		n.Heal()
		n.CutOneWay("a", "b") // the request is lost, and its caller gave up before the heal
		if _, err := callWithin(n, "x", time.Second); !errors.Is(err, task.ErrNoLeader) {
			t.Errorf("request cut off: %v", err)
		}
		n.Heal()
		time.Sleep(time.Second)
		if h.served != 3 {
			t.Errorf("served %d: a request from before the heal arrived", h.served)
		}

		n.Freeze("b") // the kernel has the request
		if _, err := callWithin(n, "x", time.Second); err == nil {
			t.Error("a frozen host answered")
		}
		n.Thaw("b")
		synctest.Wait()
		if h.served != 4 {
			t.Errorf("served %d: the thawed host did not see the request", h.served)
		}
	})
}
