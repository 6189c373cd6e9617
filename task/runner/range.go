package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"lanjobs/task"
)

// The range of a shard (R23, R35). A task works through it from the start and says now and then how far it is: PUT /v1/range with
// the first number that it has not begun. Others may then be given the later part, and the answer says where its own ends now. So
// the end moves by the task's own requests only, and what was answered last is right: it is kept beside the checkpoint, for a later
// agent of this node. Only after a request whose answer is unknown the leader has to be asked.

// currentRange is what the shard works on, as far as this node knows; nil in a stage without a range.
func (e *endpoint) currentRange() *task.ShardRange {
	if e.a.Range == nil {
		return nil
	}
	if kept := loadRange(e.paths.rng); kept != nil {
		return kept
	}
	return e.a.Range
}

// getRange asks the leader if a cursor may have arrived whose answer did not; without a leader it tells what it knows, which is
// never too small.
func (e *endpoint) getRange(w http.ResponseWriter, req *http.Request) error {
	e.ranging.Lock()
	defer e.ranging.Unlock()
	have := e.currentRange()
	if have == nil {
		return noRange()
	}
	if e.rangeUnsure {
		switch now, err := e.r.backend.Range(req.Context(), e.a, nil, ""); {
		case err == nil:
			e.keepRange(now)
			have = &now
		case !errors.Is(err, task.ErrNoLeader):
			return err
		}
	}
	return writeJSON(w, have)
}

// putRange passes a cursor on. The same request id again is a repeat; so is the same cursor, which moves nothing twice.
func (e *endpoint) putRange(b Backend, w http.ResponseWriter, req *http.Request) error {
	request, err := requestID(req.Header)
	if err != nil {
		return err
	}
	body, err := readBody(w, req, 256)
	if err != nil {
		return err
	}
	cursor, err := parseCursor(string(body))
	if err != nil {
		return err
	}
	e.signOfLife()
	e.ranging.Lock()
	defer e.ranging.Unlock()
	if e.a.Range == nil {
		return noRange()
	}
	e.rangeUnsure = true
	now, err := b.Range(req.Context(), e.a, &cursor, request)
	if err != nil {
		return err
	}
	e.keepRange(now)
	return writeJSON(w, now)
}

// keepRange notes an answer of the leader; ranging is held.
func (e *endpoint) keepRange(now task.ShardRange) {
	text, _ := json.Marshal(now) // two numbers: cannot fail
	if err := writeWhole(e.paths.rng, text, 0o600); err != nil {
		e.r.log.Warn("range file not written", "execution", e.x, "error", err)
		return // the leader is asked next time
	}
	e.rangeUnsure = false
}

func loadRange(path string) *task.ShardRange {
	text, err := readRegular(path)
	if err != nil {
		return nil
	}
	var r task.ShardRange
	if json.Unmarshal(text, &r) != nil {
		return nil
	}
	return &r
}

func noRange() error {
	return task.NewProblem(task.ErrNotFound, "this shard has no range", "its stage needs shards: {range: 0-999999, size: 10000}")
}

// parseCursor reads "42" or "cursor=42".
func parseCursor(body string) (int64, error) {
	text := strings.TrimPrefix(strings.TrimSpace(body), "cursor=")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, task.NewProblem(task.ErrInvalid, fmt.Sprintf("%q is not a whole number", clip(text)), "send the first number that you have not begun")
	}
	return n, nil
}
