package transport

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"lanjobs/task"
)

// openPost is what one who has no certificate yet may POST, as JSON. What is refused is refused before it costs anything.
type openPost[Q any] struct {
	act   string // "joining", for who comes with another method
	not   string // "not a join request: ", before what is wrong with it
	limit int64  // bytes
	check func(*Q) error
}

// answering is its handler. remoteAddr is where it came from.
func answering[Q, R any](q openPost[Q], answer func(ctx context.Context, request Q, remoteAddr string) (R, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := q.read(w, r)
		if err != nil {
			WriteProblem(w, err)
			return
		}
		reply, err := answer(r.Context(), request, r.RemoteAddr)
		if err != nil {
			WriteProblem(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	})
}

func (q openPost[Q]) read(w http.ResponseWriter, r *http.Request) (request Q, err error) {
	if r.Method != http.MethodPost {
		return request, task.NewProblem(task.ErrInvalid, q.act+" is a POST.", "")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, q.limit))
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		return request, task.NewProblem(task.ErrInvalid, q.not+err.Error(), "")
	}
	return request, q.check(&request)
}
