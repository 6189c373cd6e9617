package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// handIn hands in one job by itself, several in as few requests as they fit into.
func (c *call) handIn(ctx context.Context, cl *client, specs []*task.Spec, use func(*task.SubmitReply) error) error {
	if len(specs) == 1 {
		reply, err := submitSpec(ctx, cl, specs[0], false)
		if err != nil {
			return c.explainDoor(err)
		}
		return use(reply)
	}
	var refused []error
	n := 0
	for n < len(specs) {
		body, lines, err := linesOf(specs[n:])
		if err != nil {
			return err
		}
		answers, err := submitLines(ctx, cl, body, lines)
		if err != nil {
			return c.explainDoor(err)
		}
		for i, a := range answers {
			if a.Problem != nil {
				refused = append(refused, refusedFile(c.args[n+i], a.Problem))
				continue
			}
			if err := use(a.SubmitReply); err != nil {
				return err
			}
		}
		n += lines
	}
	return together(refused)
}

// linesOf puts as many jobs into one body as are allowed, at least one.
func linesOf(specs []*task.Spec) (body []byte, lines int, err error) {
	for _, spec := range specs {
		text, err := json.Marshal(spec)
		if err != nil {
			return nil, 0, err
		}
		line, err := json.Marshal(transport.SubmitLine{RequestID: task.RequestID(rand.Text()), Spec: text})
		if err != nil {
			return nil, 0, err
		}
		if lines > 0 && (lines == transport.MaxSubmitLines || len(body)+len(line)+1 > transport.MaxSubmitBytes) {
			break
		}
		body, lines = append(append(body, line...), '\n'), lines+1
	}
	return body, lines, nil
}

// submitLines hands in many jobs and reads an answer for each.
func submitLines(ctx context.Context, cl *client, body []byte, lines int) ([]transport.SubmitAnswer, error) {
	var out []transport.SubmitAnswer
	read := func(d *json.Decoder) error {
		out = out[:0]
		for range lines {
			var a transport.SubmitAnswer
			if err := d.Decode(&a); err != nil {
				return err
			}
			if a.Problem == nil && a.SubmitReply == nil {
				return errors.New("an answer without a job")
			}
			out = append(out, a)
		}
		return nil
	}
	// All are committed before the answer: more than one try's usual time may pass on slow disks.
	limit := tryTimeout + time.Duration(lines)*20*time.Millisecond
	err := cl.write(ctx, request{method: "POST", path: "/v1/jobs", kind: transport.ContentTypeSpecs, body: body, limit: limit}, replyReader(read))
	return out, err
}

// refusedFile names the file of a job that was refused.
func refusedFile(name string, p *task.Problem) error {
	named := *p
	named.Detail = name + ": " + p.Detail
	return &named
}

// together makes one error of several; the exit code is that of the first.
func together(errs []error) error {
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, explain(err))
	}
	return &exitError{code: exitCode(errs[0]), bare: true, detail: strings.Join(texts, "\n"), cause: errs[0]}
}
