package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

// readSpec makes a checked spec of a submit's body: a spec that a client has built, or the text of a job file. The server
// checks for itself whatever the client did: an entry that a replica cannot apply would bring all of them down (C51).
func readSpec(q *request) error {
	kind, _, err := mime.ParseMediaType(q.http.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if len(q.body) == 0 {
		return invalid("there is no job in the body", "")
	}
	var spec *task.Spec
	switch kind {
	case transport.ContentTypeSpecs:
		return readLines(q)
	case transport.ContentTypeSpec:
		if spec, err = decodeSpec(q.body); err != nil {
			return err
		}
	case "multipart/form-data":
		return invalid("a job is the body itself, not a form", "curl --data-binary @job.yaml")
	default: // whatever curl calls it
		if len(q.body) > task.MaxJobFileBytes {
			return task.NewProblem(task.ErrTooLarge, fmt.Sprintf("a job file has at most %d KiB", task.MaxJobFileBytes>>10), "")
		}
		var faults []task.Fault
		if spec, faults = jobfile.Load("job.yaml", q.body, jobfile.Options{}); len(faults) > 0 || spec == nil {
			return faulty(faults)
		}
	}
	if err := idempotencyKey(q, spec); err != nil {
		return err
	}
	s, err := newSubmission(spec, q.arrived)
	if err != nil {
		return err
	}
	s.id = q.id
	q.lines = []*submission{s}
	return nil
}

// decodeSpec reads the JSON of a spec. A field that is unknown here is refused: it asks for something that would not be done.
func decodeSpec(data []byte) (*task.Spec, error) {
	if len(data) > task.MaxSpecBytes {
		return nil, task.NewProblem(task.ErrTooLarge, fmt.Sprintf("the job is larger than %d KiB", task.MaxSpecBytes>>10), "")
	}
	spec := &task.Spec{}
	return spec, decodeJSON(data, spec)
}

// repeatable is for how long a submit that got no answer may be repeated: a schedule's time that was ahead when it was first
// sent is still taken.
const repeatable = time.Minute

// newSubmission checks a spec and encodes it. What is stored is always the canonical JSON and never what a client sent: replicas
// with other versions of a decoder must agree on it (duplicate names, upper case, broken UTF-8).
func newSubmission(spec *task.Spec, now time.Time) (*submission, error) {
	if faults := jobfile.CheckAt(spec, now.Add(-repeatable)); len(faults) > 0 {
		return nil, faulty(faults)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	sum, err := digestOf(spec, data)
	return &submission{spec: spec, data: data, sum: sum}, err
}

// idempotencyKey lets a header give the key that the file does not have.
func idempotencyKey(q *request, spec *task.Spec) error {
	key := q.http.Header.Get("Idempotency-Key")
	if key == "" || key == spec.IdempotencyKey {
		return nil
	}
	if spec.IdempotencyKey != "" {
		return invalid("the job has the idempotency key "+shown(spec.IdempotencyKey)+", the header another one", "")
	}
	spec.IdempotencyKey = key
	return nil
}

func faulty(faults []task.Fault) error {
	p := task.NewProblem(task.ErrInvalid, "the job file has "+plural(len(faults), "problem", "problems")+"; nothing was submitted.", "")
	if len(faults) > 0 {
		f := faults[0]
		place := f.Path
		if f.Line > 0 {
			place = fmt.Sprintf("%d:%d", f.Line, f.Column)
		}
		if place != "" && !strings.HasPrefix(f.Message, place) {
			place += ": "
		} else {
			place = ""
		}
		p.Detail += " " + place + f.Message
		p.Hint = f.Suggestion
	}
	p.Faults = faults
	return p
}

// digest names "the same file": the spec without the text it was read from.
func digest(spec *task.Spec) ([]byte, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return digestOf(spec, data)
}

// digestOf is digest for a spec whose canonical JSON is at hand. Its last field is the source, so the rest is what stands before.
func digestOf(spec *task.Spec, data []byte) ([]byte, error) {
	if spec.Source != "" {
		source, err := json.Marshal(spec.Source)
		if err != nil {
			return nil, err
		}
		before, found := bytes.CutSuffix(data, fmt.Appendf(nil, `,"source":%s}`, source))
		if !found {
			return nil, fmt.Errorf("%w: source is not the last field of a spec", errInternal)
		}
		data = append(before[:len(before):len(before)], '}')
	}
	sum := sha256.Sum256(data)
	return sum[:], nil
}

// submit answers POST /v1/jobs (R31).
func (a *API) submit(ctx context.Context, q *request) (*reply, error) {
	if isBulk(q.http) {
		return a.submitLines(ctx, q)
	}
	dry, err := q.flag("dry_run")
	if err != nil {
		return nil, err
	}
	s := q.lines[0]
	if dry {
		return a.dryRun(q, s)
	}
	a.look(q, func(v *view) { err = v.wakesWhom(s.spec) })
	if err != nil {
		return nil, err
	}
	results, errs := a.cfg.Leader.SubmitAll(ctx, []fsm.SubmitJob{{RequestID: s.id, Spec: s.data, Digest: s.sum, By: q.by}})
	if errs[0] != nil {
		return nil, errs[0]
	}
	s.result = results[0]
	var out *task.SubmitReply
	a.look(q, func(v *view) { out, err = v.submitted(s) })
	if err != nil {
		return nil, err
	}
	status := http.StatusCreated
	if out.Existed {
		status = http.StatusOK
	}
	rep, err := jsonReply(status, out)
	if err == nil {
		rep.set("Location", location(out))
	}
	return rep, err
}

func location(r *task.SubmitReply) string {
	if r.Schedule != "" {
		return "/v1/schedules/" + r.Schedule
	}
	return "/v1/jobs/" + string(r.ID)
}

// scheduled says what became of a job with a schedule: no job yet. A repeat of this very request is no news to its sender, who has
// had no answer yet; but somebody may have changed or removed the schedule since.
func (v *view) scheduled(sub *submission) *task.SubmitReply {
	r := &sub.result
	out := &task.SubmitReply{Name: r.Schedule, Schedule: r.Schedule, Existed: r.Existed && !r.Repeated}
	s := v.Schedule(r.Schedule)
	switch {
	case s == nil:
		out.Note = "it was removed since"
		return out
	case r.Repeated && s.Spec.Digest != string(sub.sum):
		out.Note = "it has been changed since by " + s.By
	default:
		out.Note = v.cannotRun(&s.Spec.Spec)
	}
	if next := v.schedule(s, 1).Next; len(next) > 0 {
		out.Next = &next[0]
	}
	return out
}

// submitted says what became of a submission.
func (v *view) submitted(s *submission) (*task.SubmitReply, error) {
	r := &s.result
	switch {
	case s.problem != nil:
		return nil, s.problem
	case r.Err != nil && r.Job != "":
		return nil, v.keyConflict(r.Job)
	case r.Err != nil && v.Queue(s.spec.Queue) == nil:
		return nil, v.noQueue(s.spec.Queue)
	case r.Err != nil:
		return nil, r.Err
	}
	if r.Schedule != "" {
		return v.scheduled(s), nil
	}
	out := &task.SubmitReply{ID: r.Job, Name: s.spec.Name}
	if j := v.Job(r.Job); j != nil {
		out.Name = j.Spec.Name
		// A repeat of this very request is no news to its sender: he has had no answer yet.
		out.Existed = r.Existed && j.Request != s.id
		if !out.Existed {
			out.Note = v.cannotRun(&j.Spec.Spec)
		}
	}
	return out, nil
}

// dryRun says what a submit would do, and does nothing.
func (a *API) dryRun(q *request, s *submission) (*reply, error) {
	out := task.SubmitReply{Name: s.spec.Name}
	var err error
	a.look(q, func(v *view) {
		out.Note = v.cannotRun(s.spec)
		old := v.keyUser(s.spec)
		if err = v.wakesWhom(s.spec); err != nil {
			return
		}
		switch {
		case v.Queue(s.spec.Queue) == nil:
			err = v.noQueue(s.spec.Queue)
		case old == nil:
		case old.Spec.Digest != string(s.sum):
			err = v.keyProblem(old)
		default:
			out.ID, out.Existed, out.Note = old.ID, true, ""
		}
	})
	if err != nil {
		return nil, err
	}
	return ok(out)
}

// keyUser is the job that a spec's idempotency key leads to, nil if none.
func (v *view) keyUser(spec *task.Spec) (found *fsm.Job) {
	if spec.IdempotencyKey == "" {
		return nil
	}
	v.JobsNewestFirst(func(j *fsm.Job) bool {
		if j.Spec.IdempotencyKey != spec.IdempotencyKey {
			return true
		}
		if v.Led-j.SubmittedLed < j.Spec.IdempotencyWindow {
			found = j
		}
		return false
	})
	return found
}

// keyConflict says who used the key before, and when.
func (v *view) keyConflict(id task.JobID) error {
	if j := v.Job(id); j != nil {
		return v.keyProblem(j)
	}
	return task.NewProblem(task.ErrConflict, "the idempotency key was used with a different file", "")
}

func (v *view) keyProblem(old *fsm.Job) error {
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("idempotency key %q was used %s ago by %s with a different file.",
		old.Spec.IdempotencyKey, short(v.ago(old.Submitted)), old.ID), "Other work needs another key.")
}

// cannotRun says that a stage of a job finds no machine, however long it waits for a busy one: "no machine can run it now:
// gpu=true, 0 of 4 (pc-win has gpu=yes)". "" if each stage has one.
func (v *view) cannotRun(spec *task.Spec) string {
	for i := range spec.Stages {
		st := &spec.Stages[i]
		ms := v.machines(spec.Queue, st)
		why := v.noShell(st, ms)
		if why == "" && anyFits(ms) {
			continue
		}
		what := "it"
		if len(spec.Stages) > 1 {
			what = "stage " + st.Name
		}
		return "no machine can run " + what + " now: " + cmp.Or(why, obstacles(ms, st.Require))
	}
	return ""
}
