package runner

import (
	"net/http"
	"time"

	"lanjobs/task"
)

func (e *endpoint) postProgress(b Backend, w http.ResponseWriter, req *http.Request) error {
	body, err := readBody(w, req, 4*task.MaxMessageLength)
	if err != nil {
		return err
	}
	text, err := progressText(string(body))
	if err != nil {
		return err
	}
	e.signOfLife()
	if err := e.tell(b, text, req); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tell passes progress on at most once a second; what comes faster replaces what waits.
func (e *endpoint) tell(b Backend, text string, req *http.Request) error {
	e.mu.Lock()
	switch {
	case e.closed:
		e.mu.Unlock()
		return task.ErrStaleToken
	case e.telling:
		e.progress = &text
		e.mu.Unlock()
		return nil
	}
	e.telling = true
	e.wg.Go(func() { e.tellLater(b) })
	e.mu.Unlock()
	return b.Progress(req.Context(), e.a, text)
}

func (e *endpoint) tellLater(b Backend) {
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.r.clock.After(time.Second):
		}
		e.mu.Lock()
		text := e.progress
		e.progress = nil
		e.telling = text != nil
		e.mu.Unlock()
		if text == nil {
			return
		}
		if err := b.Progress(e.ctx, e.a, *text); err != nil {
			e.r.log.Debug("progress not passed on", "execution", e.x, "error", err)
		}
	}
}
