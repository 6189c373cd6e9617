package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

// submission is one job on its way into the ledger: decoded, checked and encoded once, however often it has to be proposed.
type submission struct {
	id        task.RequestID
	spec      *task.Spec
	data, sum []byte        // canonical JSON and digest of spec
	problem   *task.Problem // nothing is proposed, this is the answer
	result    fsm.Result
	done      bool // result is what a committed entry did
}

// readSpec makes a checked spec of a submit's body: a spec that a client has built, or the text of a job file. The server
// checks for itself whatever the client did: an entry that a replica cannot apply would bring all of them down (C51).
func readSpec(q *request) error {
	if len(q.body) == 0 {
		return invalid("there is no job in the body", "")
	}
	var spec *task.Spec
	var err error
	switch mediaType(q.http.Header.Get("Content-Type")) {
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
	s.requestedAs(q.id)
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
	if faults := jobfile.Check(spec, now.Add(-repeatable)); len(faults) > 0 {
		return nil, faulty(faults)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	sum, err := digestOf(spec, data)
	return &submission{spec: spec, data: data, sum: sum}, err
}

// requestedAs gives a submission its request's id. For a job the ledger knows the file that came with it; for a schedule only the id.
func (s *submission) requestedAs(id task.RequestID) {
	if s.id = id; s.spec.Schedule != nil && id != "" {
		s.id = id.Of(s.sum)
	}
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
