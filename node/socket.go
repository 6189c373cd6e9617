package node

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"lanjobs/node/api"
	"lanjobs/task"
	"lanjobs/transport"
)

// socketDoor is the unix socket on which this machine's owner is admin: the folder it lies in is the owner's alone.
type socketDoor struct {
	ln    net.Listener
	serve func(context.Context) error
	close func() error
}

// headerTimeout bounds how slowly a client may send its request's head.
const headerTimeout = 10 * time.Second

// openSocketDoor listens on the data folder's unix socket at once, so that a client that sees the node started finds it.
func openSocketDoor(ctx context.Context, dataDir string, h http.Handler, clock task.Clock) (socketDoor, error) {
	ln, err := transport.ListenSocket(ctx, dataDir)
	if err != nil {
		return socketDoor{}, err
	}
	who := owner()
	srv := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(api.WithBy(r.Context(), who)))
	})}
	serve := func(ctx context.Context) error {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			<-ctx.Done()
			stop, cancel := transport.WithTimeout(context.Background(), clock, time.Second)
			defer cancel()
			if srv.Shutdown(stop) != nil {
				_ = srv.Close() // streams that go on for ever
			}
		}()
		err := srv.Serve(ln)
		if errors.Is(err, http.ErrServerClosed) {
			<-ended
			return nil
		}
		return err
	}
	return socketDoor{ln: ln, serve: serve, close: func() error { _ = ln.Close(); return nil }}, nil
}
