package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"lanjobs/task"
)

const (
	contentTypeMessage = "application/msgpack"
	pathCalls          = "/rpc/"
	pathJoin           = "/v1/join"
	pathLogin          = "/v1/login"
	pathHealth         = "/healthz"
)

const (
	// maxStreams is how many calls a peer may have open on its one connection, parked polls included.
	maxStreams = 10_000
	// streamWindow is what a sender may have under way; below it, Wi-Fi with a round trip of 20 ms would be the limit.
	streamWindow = 2 << 20
	connWindow   = 4<<20 - 1 // the largest that net/http takes
	// A peer that is silent for pingAfter is asked, and given up after pingWait: a machine that went to sleep holds no calls.
	pingAfter = 5 * time.Second
	pingWait  = 5 * time.Second
	// An unused connection is closed by its client first: a server's good-bye could cross with a call.
	idleClient = 2 * time.Minute
	idleServer = 3 * time.Minute
	// drainTimeout is how long calls under way may take to end when serving ends; their context has ended by then.
	drainTimeout = 2 * time.Second
	// guestTimeout bounds the reading of a request by somebody without a certificate.
	guestTimeout = 10 * time.Second
)

// Services are what a node offers on its cluster port.
type Services struct {
	Calls Handler      // of other nodes
	API   http.Handler // of api.go, for clients with a certificate; ClientFrom tells who. /healthz for all
	Join  http.Handler // POST /v1/join, for all; see JoinHandler. nil = nobody can join here
	Pair  http.Handler // POST /v1/pair, for all; see PairHandler. nil = likewise
	Login http.Handler // POST /v1/login, for all; see LoginHandler. nil = nobody can log in here
	Clock task.Clock
	Log   *slog.Logger
}

// Serve answers calls and HTTP on a mux until ctx ends. Parked calls end with it.
func Serve(ctx context.Context, m *Mux, s Services) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	calls, web := m.Open(ALPNRPC), m.openWeb()
	failed := make(chan error, 2)
	go func() { failed <- ServeCalls(ctx, calls, s.Calls, s.Clock, s.Log) }()
	go func() { failed <- serveHTTP(ctx, web, webServer(s), s.Clock) }()
	first := <-failed
	cancel()
	return errors.Join(first, <-failed)
}

// ServeCalls answers calls of nodes on a listener whose connections are Identified, until ctx ends.
func ServeCalls(ctx context.Context, ln net.Listener, h Handler, clock task.Clock, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           callServer{h},
		Protocols:         &http.Protocols{},
		HTTP2:             http2Config(),
		ReadHeaderTimeout: HandshakeTimeout,
		IdleTimeout:       idleServer,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnContext:       withPeer,
	}
	srv.Protocols.SetUnencryptedHTTP2(true) // below it is TLS, or memory in tests
	return serveHTTP(ctx, ln, srv, clock)
}

func http2Config() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, StrictMaxConcurrentRequests: true,
		MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
		SendPingTimeout: pingAfter, PingTimeout: pingWait, WriteByteTimeout: pingAfter + pingWait,
	}
}

// webServer is for people and for machines that are no members yet.
func webServer(s Services) *http.Server {
	conf := http2Config()
	conf.MaxConcurrentStreams = 250
	return &http.Server{
		Handler:           webGate(s),
		HTTP2:             conf,
		ReadHeaderTimeout: HandshakeTimeout,
		IdleTimeout:       idleServer,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		ConnContext:       withPeer,
	}
}

// serveHTTP runs a server until ctx ends.
func serveHTTP(ctx context.Context, ln net.Listener, srv *http.Server, clock task.Clock) error {
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	var err error
	select {
	case err = <-failed:
		failed <- nil
	case <-ctx.Done():
	}
	drain, cancel := WithTimeout(context.WithoutCancel(ctx), clock, drainTimeout)
	defer cancel()
	if srv.Shutdown(drain) != nil {
		_ = srv.Close()
	}
	<-failed
	if ctx.Err() != nil || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", ln.Addr(), err)
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(context.WithValue(ctx, peerKey{}, PeerID(c)), clientKey{}, clientOf(c))
}

// PeerFrom tells which node sent the request that a handler is answering; "" = somebody without a certificate.
func PeerFrom(ctx context.Context) task.NodeID {
	id, _ := ctx.Value(peerKey{}).(task.NodeID)
	return id
}

// webGate lets strangers as far as they need to become members or clients, and no further (C47). A node has no business here
// beyond that: what it asks it asks by calls, and its certificate is not a person's.
func webGate(s Services) http.Handler {
	mux := http.NewServeMux()
	if s.Join != nil {
		mux.Handle(pathJoin, impatient(s.Clock, s.Join))
	}
	if s.Pair != nil {
		mux.Handle(pathPair, impatient(s.Clock, s.Pair))
	}
	if s.Login != nil {
		mux.Handle(pathLogin, impatient(s.Clock, s.Login))
	}
	mux.Handle(pathHealth, impatient(s.Clock, s.API))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case ClientFrom(r.Context()).ID != "":
			s.API.ServeHTTP(w, r)
		case PeerFrom(r.Context()) != "":
			WriteProblem(w, task.NewProblem(task.ErrNotAllowed, "this needs the certificate of a client, and a machine's is none.", loginHint))
		default:
			WriteProblem(w, task.NewProblem(task.ErrNotAllowed, "this needs a certificate of the cluster.", loginHint))
		}
	})
	return mux
}

// impatient fails the reading of a request's body that takes longer than guestTimeout.
func impatient(clock task.Clock, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := WithTimeout(r.Context(), clock, guestTimeout)
		defer cancel()
		stop := context.AfterFunc(ctx, func() { _ = http.NewResponseController(w).SetReadDeadline(longAgo) })
		defer stop()
		h.ServeHTTP(w, r)
	})
}

// callServer turns requests into calls.
type callServer struct{ handler Handler }

func (s callServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil // nobody reads it, and there are many answers
	reply, err := s.serve(w, r)
	if err != nil {
		WriteProblem(w, err)
		return
	}
	w.Header().Set("Content-Type", contentTypeMessage)
	_, _ = w.Write(reply)
}

func (s callServer) serve(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	from := PeerFrom(r.Context())
	method, ok := strings.CutPrefix(r.URL.Path, pathCalls)
	switch {
	case from == "":
		return nil, task.NewProblem(task.ErrNotAllowed, "a call needs a node's certificate.", "")
	case !ok || r.Method != http.MethodPost:
		return nil, task.NewProblem(task.ErrInvalid, "not a call: "+r.Method+" "+r.URL.Path, "")
	}
	if err := s.checkGeneration(w, from, r, Method(method)); err != nil {
		return nil, err
	}
	body, err := readMessage(r.Body, r.ContentLength)
	if err != nil {
		return nil, err
	}
	return answerCall(r.Context(), s.handler, from, Method(method), body)
}

// answerCall is the same for calls over the network and for those of a node to itself.
func answerCall(ctx context.Context, h Handler, from task.NodeID, method Method, body []byte) ([]byte, error) {
	reply, err := h.ServeCall(ctx, from, method, body)
	if err != nil {
		return nil, err
	}
	return Encode(reply)
}

// readMessage reads a body of at most MaxMessageBytes; size is what its sender announced, -1 if nothing.
func readMessage(r io.Reader, size int64) ([]byte, error) {
	if size > MaxMessageBytes {
		return nil, tooLarge(fmt.Sprintf("a message of %d bytes", size))
	}
	if size >= 0 {
		b := make([]byte, size)
		_, err := io.ReadFull(r, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(r, MaxMessageBytes+1))
	if len(b) > MaxMessageBytes {
		return nil, tooLarge("a message")
	}
	return b, err
}
