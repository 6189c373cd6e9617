package transport

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"lanjobs/task"
)

const (
	contentTypeProblem = "application/problem+json"
	maxProblemBytes    = 1 << 20
)

type codeStatus struct {
	code   string
	status int
}

// statuses pairs a problem's code with its status in HTTP. Of several codes with one status the first is meant where only
// the status is known.
var statuses = []codeStatus{
	{"invalid", http.StatusBadRequest}, {"not_allowed", http.StatusForbidden}, {"not_allowed", http.StatusUnauthorized},
	{"not_found", http.StatusNotFound}, {"conflict", http.StatusConflict}, {"stale_token", http.StatusConflict},
	{"conflict", http.StatusPreconditionFailed}, {"too_large", http.StatusRequestEntityTooLarge},
	{"no_leader", http.StatusServiceUnavailable}, {"no_leader", http.StatusBadGateway}, {"no_leader", http.StatusGatewayTimeout},
	{"internal", http.StatusInternalServerError},
}

// WriteProblem answers a request with an error (RFC 9457).
func WriteProblem(w http.ResponseWriter, err error) {
	p := task.Explain(err)
	body, jsonErr := json.Marshal(p)
	if jsonErr != nil {
		body = []byte(`{"type":"internal","detail":"error not writable"}`)
	}
	status := http.StatusInternalServerError
	if i := slices.IndexFunc(statuses, func(s codeStatus) bool { return s.code == p.Code }); i >= 0 {
		status = statuses[i].status
	}
	w.Header().Set("Content-Type", contentTypeProblem)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// ReadProblem reads the error of an answer with status 400 or above. An answer that is no problem of ours, as from something
// else that happens to listen there, is made into one.
func ReadProblem(resp *http.Response) *task.Problem {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	p := &task.Problem{}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), contentTypeProblem) && json.Unmarshal(text, p) == nil && p.Code != "" {
		return p
	}
	p = &task.Problem{Code: "internal", Detail: strings.TrimSpace(string(text))}
	for _, s := range statuses {
		if s.status == resp.StatusCode {
			p.Code = s.code
			break
		}
	}
	if p.Detail == "" {
		p.Detail = resp.Status
	}
	p.Retryable = p.Code == "no_leader"
	return p
}
