package api

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

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
	var faults []task.Fault
	switch kind {
	case transport.ContentTypeSpec:
		spec = &task.Spec{}
		if err := decodeJSON(q.body, spec); err != nil {
			return err
		}
	case "multipart/form-data":
		return invalid("a job is the body itself, not a form", "curl --data-binary @job.yaml")
	default: // whatever curl calls it
		if len(q.body) > task.MaxJobFileBytes {
			return task.NewProblem(task.ErrTooLarge, fmt.Sprintf("a job file has at most %d KiB", task.MaxJobFileBytes>>10), "")
		}
		spec, faults = jobfile.Load("job.yaml", q.body, jobfile.Options{})
	}
	if len(faults) > 0 || spec == nil {
		return faulty(faults)
	}
	if err := idempotencyKey(q, spec); err != nil {
		return err
	}
	if faults = jobfile.Check(spec); len(faults) > 0 {
		return faulty(faults)
	}
	q.spec = spec
	return nil
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
		if place != "" {
			place += ": "
		}
		p.Detail += " " + place + f.Message
		p.Hint = f.Suggestion
	}
	p.Faults = faults
	return p
}

// digest names "the same file": the spec without the text it was read from.
func digest(spec *task.Spec) ([]byte, error) {
	bare := *spec
	bare.Source = ""
	data, err := json.Marshal(&bare)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return sum[:], nil
}

// submit answers POST /v1/jobs (R31).
func (a *API) submit(ctx context.Context, q *request) (*reply, error) {
	dry, err := q.flag("dry_run")
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(q.spec)
	if err != nil {
		return nil, err
	}
	sum, err := digest(q.spec)
	if err != nil {
		return nil, err
	}
	if dry {
		return a.dryRun(q, string(sum))
	}
	r, err := a.cfg.Leader.Submit(ctx, fsm.SubmitJob{RequestID: q.id, Spec: data, Digest: sum, By: q.by})
	switch {
	case err != nil:
		return nil, err
	case r.Err != nil && r.Job != "":
		return nil, a.keyConflict(q, r.Job)
	case r.Err != nil:
		return nil, r.Err
	}
	out := task.SubmitReply{ID: r.Job, Name: q.spec.Name}
	a.look(q, func(v *view) {
		j := v.Job(r.Job)
		if j == nil {
			return
		}
		out.Name = j.Spec.Name
		// A repeat of this very request is no news to its sender: he has had no answer yet.
		out.Existed = r.Existed && j.Request != q.id
		if !out.Existed {
			out.Note = v.cannotRun(&j.Spec.Spec)
		}
	})
	status := http.StatusCreated
	if out.Existed {
		status = http.StatusOK
	}
	rep, err := jsonReply(status, out)
	if err == nil {
		rep.set("Location", "/v1/jobs/"+string(out.ID))
	}
	return rep, err
}

// dryRun says what a submit would do, and does nothing.
func (a *API) dryRun(q *request, sum string) (*reply, error) {
	out := task.SubmitReply{Name: q.spec.Name}
	var err error
	a.look(q, func(v *view) {
		out.Note = v.cannotRun(q.spec)
		old := v.keyUser(q.spec)
		switch {
		case old == nil:
		case old.Spec.Digest != sum:
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
func (a *API) keyConflict(q *request, id task.JobID) error {
	err := error(task.NewProblem(task.ErrConflict, "the idempotency key was used with a different file", ""))
	a.look(q, func(v *view) {
		if j := v.Job(id); j != nil {
			err = v.keyProblem(j)
		}
	})
	return err
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
		ms := v.machines(st)
		if countOf(ms, canRun, full, leading, unheard) > 0 {
			continue
		}
		what := "it"
		if len(spec.Stages) > 1 {
			what = "stage " + st.Name
		}
		return "no machine can run " + what + " now: " + obstacles(ms, st.Require)
	}
	return ""
}
