//go:build e2e && linux

package cli_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"lanjobs/task/runner"
	"lanjobs/transport"
)

// intercept stands at an address in the place of a member: with an authority of its own, as it cannot have the cluster's, and
// passes on every question of a machine that wants to join.
func (l *lab) intercept(listen, member string) {
	l.t.Helper()
	info, ca, err := transport.NewCluster("home")
	if err != nil {
		l.t.Fatal(err)
	}
	i, err := transport.NewIdentity("a")
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
	clock, log := runner.SystemClock(), slog.New(slog.DiscardHandler)
	trust, err := transport.NewTrust(i, clock, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	tcp, udp, err := transport.ListenPort(l.t.Context(), netip.MustParseAddrPort(listen))
	if err != nil {
		l.t.Fatal(err)
	}
	_ = udp.Close()
	mux := transport.NewMux(transport.MuxConfig{Listener: tcp, Trust: trust, Limits: transport.DefaultMuxLimits(), Clock: clock, Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- mux.Run(ctx) }()
	go func() {
		ended <- transport.Serve(ctx, mux, transport.Services{API: http.NotFoundHandler(), Pair: transport.PairHandler(relay(member)), Clock: clock, Log: log})
	}()
	l.t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
	})
}

// relay asks a member in the place of whoever asks.
func relay(member string) func(context.Context, transport.PairRequest, string) (transport.PairReply, error) {
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}}).DialContext(ctx, network, addr)
	}}}
	return func(ctx context.Context, q transport.PairRequest, _ string) (r transport.PairReply, err error) {
		body, err := json.Marshal(q)
		if err != nil {
			return r, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+member+"/v1/pair", bytes.NewReader(body))
		if err != nil {
			return r, err
		}
		resp, err := web.Do(req)
		if err != nil {
			return r, err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return r, transport.ReadProblem(resp)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return r, err
		}
		return r, json.Unmarshal(text, &r)
	}
}

// TestProcIntercepted: somebody answers in the place of the member that a machine wants to join by, and passes everything on. The
// right code, typed on the true member, lets nobody in, and both sides say what that may mean.
func TestProcIntercepted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.found("a")
	a := l.nodes[0]
	evil := fmt.Sprintf("127.0.0.66:%d", l.port)
	l.intercept(evil, a.peer)
	b := l.add("b", fmt.Sprintf("127.0.0.2:%d", l.port))
	code := l.asks(b, evil)
	l.want(a, 0, "b  ", "approve")
	l.want(a, 4, "If the code is right and fresh, someone may be altering the traffic.", "approve", "-y", code)
	l.waitFor(10*time.Second, "b says so too", func() bool {
		return b.logged("This one's is " + code + "; if that is what was typed, somebody may be altering the traffic.")
	})
	if out := l.must(a, "token", "ls", "-o", "name"); out != "" {
		t.Errorf("a token was made: %s", out)
	}
	// By the true member the same machine comes in.
	b.kill(15)
	l.want(a, 0, "✓ b is in.", "approve", "-y", l.asksAgain(b, code, a.peer))
}

// asksAgain is asks for a machine that has shown another code before.
func (l *lab) asksAgain(n *member, before string, words ...string) string {
	l.t.Helper()
	l.asks(n, words...)
	code := before
	l.waitFor(20*time.Second, n.name+" shows another code", func() bool { code = l.codeOf(n); return code != before })
	return code
}
