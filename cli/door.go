package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// handlerDoor leads to the API of a node in this process. Answers arrive while they are written, as over a socket.
type handlerDoor struct{ handler http.Handler }

// RoundTrip runs the handler until it has sent its header; the body follows through a pipe.
func (d handlerDoor) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	inner := req.Clone(ctx)
	inner.RequestURI = req.URL.RequestURI()
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	r, w := io.Pipe()
	rw := &pipedResponse{header: http.Header{}, body: w, began: make(chan struct{})}
	go func() {
		defer cancel()
		d.handler.ServeHTTP(rw, inner)
		rw.WriteHeader(http.StatusOK)
		w.Close()
	}()
	select {
	case <-rw.began:
	case <-req.Context().Done():
		r.CloseWithError(req.Context().Err()) // a handler that still writes is told so
		return nil, req.Context().Err()
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", rw.code, http.StatusText(rw.code)), StatusCode: rw.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: rw.sent, Body: &pipedBody{r, cancel}, ContentLength: -1, Request: req,
	}, nil
}

// pipedBody ends the handler's context when its reader has had enough.
type pipedBody struct {
	*io.PipeReader
	cancel func()
}

func (b *pipedBody) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// pipedResponse is written by one handler.
type pipedResponse struct {
	header, sent http.Header
	code         int
	body         *io.PipeWriter
	once         sync.Once
	began        chan struct{}
}

func (r *pipedResponse) Header() http.Header { return r.header }

func (r *pipedResponse) WriteHeader(code int) {
	r.once.Do(func() {
		r.code, r.sent = code, r.header.Clone()
		close(r.began)
	})
}

func (r *pipedResponse) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// Flush sends the header; the body is never held back.
func (r *pipedResponse) Flush() { r.WriteHeader(http.StatusOK) }
