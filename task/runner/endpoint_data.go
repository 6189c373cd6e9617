package runner

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"lanjobs/task"
)

func (e *endpoint) putOutput(b Backend, w http.ResponseWriter, req *http.Request) error {
	request, err := requestID(req.Header)
	if err != nil {
		return err
	}
	body, err := readBody(w, req, task.MaxOutputBytes+1)
	if err != nil {
		return err
	}
	kv := task.KV{Name: req.PathValue("name"), Value: strings.TrimSuffix(string(body), "\n")}
	if err := checkOutput(kv); err != nil {
		return err
	}
	e.signOfLife()
	if err := b.Output(req.Context(), e.a, kv, request.Of([]byte(kv.Name), []byte(kv.Value))); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// getInputs: a line for each line of a value, in shard order: "shard TAB name TAB line", the line alone if one name was asked for, the shard
// alone for ?missing=1. With Accept: application/json a list of Input.
func (e *endpoint) getInputs(w http.ResponseWriter, req *http.Request) error {
	stage, name := req.PathValue("stage"), req.PathValue("name")
	if name == "" {
		stage, name, _ = strings.Cut(stage, ".")
	}
	missing := req.URL.Query().Get("missing") == "1"
	inputs, err := e.r.backend.Inputs(req.Context(), e.a, stage, name, missing)
	if err != nil {
		return err
	}
	if strings.Contains(req.Header.Get("Accept"), "application/json") {
		return writeJSON(w, append([]Input{}, inputs...))
	}
	return writeText(w, inputLines(inputs, name, missing))
}

func (e *endpoint) getState(w http.ResponseWriter, req *http.Request) error {
	key := req.PathValue("key")
	value, version, err := e.r.backend.StateGet(req.Context(), e.a, key)
	if err != nil {
		return err
	}
	if version == 0 {
		return task.NewProblem(task.ErrNotFound, fmt.Sprintf("the job has no state %q", key), "")
	}
	w.Header().Set("ETag", etag(version))
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = w.Write(value)
	return err
}

func (e *endpoint) putState(b Backend, w http.ResponseWriter, req *http.Request) error {
	ifVersion, err := parseIfMatch(req.Header)
	if err != nil {
		return err
	}
	request, err := requestID(req.Header)
	if err != nil {
		return err
	}
	key := req.PathValue("key")
	if key == "" {
		return task.NewProblem(task.ErrInvalid, "the key is empty", "PUT /v1/state/KEY")
	}
	if !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl) {
		return task.NewProblem(task.ErrInvalid, fmt.Sprintf("the key %q is not UTF-8 text without control characters", clip(key)), "")
	}
	value, err := readBody(w, req, task.MaxStateValueBytes)
	if err != nil {
		return err
	}
	version, err := b.StatePut(req.Context(), e.a, key, value, ifVersion, request.Of([]byte(key), value, []byte(req.Header.Get("If-Match")+req.Header.Get("If-None-Match"))))
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(version))
	return writeJSON(w, map[string]uint64{"version": version})
}

func etag(version uint64) string { return strconv.Quote(strconv.FormatUint(version, 10)) }
