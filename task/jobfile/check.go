package jobfile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"lanjobs/task"
)

// Bounds that only the rules know.
const (
	minRetain      = task.Minute
	minPatience    = task.Second // of deadline, start_within, stall_timeout: less is no more than a slip of the unit
	minWindow      = task.Minute
	maxWindow      = 90 * task.Day
	maxLabels      = 64
	maxLabelValue  = 255
	maxKey         = 255
	maxDescription = 4 << 10
)

// ruleFault is a rule that a Spec breaks: in which stage (-1: none), which fields are in it, the one to blame first.
type ruleFault struct {
	stage      int
	fields     []string
	message    string
	suggestion string
}

// Check tells what is wrong with a Spec, wherever it came from. A server calls it before anything reaches the log: an
// entry that a replica cannot apply would bring all of them down, at each start again. A one-off schedule that lies before now, a
// wall time, is refused as well; the zero time refuses none.
func Check(spec *task.Spec, now time.Time) []task.Fault {
	if spec == nil {
		return []task.Fault{{Message: "there is no job"}}
	}
	var out []task.Fault
	check(spec, now, func(r ruleFault) {
		f := task.Fault{Path: r.fields[0], Message: r.message, Suggestion: r.suggestion}
		if r.stage >= 0 {
			f.Path = fmt.Sprintf("stages[%d].%s", r.stage, f.Path)
			if len(spec.Stages) > 1 {
				f.Message = "stage " + quote(spec.Stages[r.stage].Name) + ": " + f.Message
			}
		}
		if len(out) < maxFaults {
			out = append(out, f)
		}
	})
	return out
}

// check runs all rules.
func check(spec *task.Spec, now time.Time, say func(ruleFault)) {
	c := &checker{say: say, stage: -1}
	c.job(spec)
	c.schedule(spec, now)
	c.files(spec.Files)
	if n := len(spec.Stages); n < 1 || n > task.MaxStages {
		c.fault(fmt.Sprintf("%d stages are not from 1 to %d", n, task.MaxStages), "", "stages")
		return // what follows costs more than their number
	}
	c.graph(spec.Stages)
	total := 0
	for i := range spec.Stages {
		c.stage = i
		c.stageSpec(&spec.Stages[i])
		c.shardKey(spec, i)
		c.from(spec.Stages, i)
		total += min(max(spec.Stages[i].Shards, 0), task.MaxShards)
	}
	c.stage = -1
	if total > task.MaxShards {
		c.fault(fmt.Sprintf("all stages together have more than %d shards", task.MaxShards), "", "stages")
	}
	c.size(spec)
}

// checker runs the rules of one place of a Spec.
type checker struct {
	say   func(ruleFault)
	stage int
}

func (c *checker) fault(message, suggestion string, fields ...string) {
	c.say(ruleFault{c.stage, fields, message, suggestion})
}

// between checks a number.
func (c *checker) between(field string, v, low, high int) {
	if v < low || v > high {
		c.fault(fmt.Sprintf("%s %d is not from %d to %d", field, v, low, high), "", field)
	}
}

// length checks a length of time.
func (c *checker) length(field string, v, low, high task.Millis) {
	if v < low || v > high {
		c.fault(fmt.Sprintf("%s %s is not from %s to %s", field, FormatLength(v), FormatLength(low), FormatLength(high)), "", field)
	}
}

// patience checks a length of time that may be 0 for none.
func (c *checker) patience(field string, v task.Millis) {
	if v != 0 {
		c.length(field, v, minPatience, MaxLength)
	}
}

// text checks what is shown or handed on as one text.
func (c *checker) text(field, v string, longest int, lines bool) {
	switch bad := badText(v); {
	case bad != "":
		c.fault(field+" "+bad, "", field)
	case len(v) > longest:
		c.fault(fmt.Sprintf("%s is longer than %d bytes", field, longest), "", field)
	case hasControl(v, lines):
		c.fault(fmt.Sprintf("%s %s has control characters", field, quote(v)), "", field)
	}
}

// name checks the name of a job or stage.
func (c *checker) name(what, v string) {
	if v == "" {
		c.fault("the "+what+" has no name", "add  name: first", "name")
	} else if !validName(v) {
		c.fault(fmt.Sprintf("%s name %s is not allowed", what, quote(v)), suggestName(v), "name")
	}
}

func (c *checker) job(spec *task.Spec) {
	c.name("job", spec.Name)
	c.text("description", spec.Description, maxDescription, true)
	if !validName(spec.Queue) {
		c.fault(fmt.Sprintf("queue %s is not the name of a queue", quote(spec.Queue)), suggestName(spec.Queue), "queue")
	}
	c.between("priority", spec.Priority, 0, 100)
	c.text("idempotency_key", spec.IdempotencyKey, maxKey, false)
	if strings.Contains(spec.IdempotencyKey, "${") {
		c.fault(fmt.Sprintf("idempotency_key %s has a variable without a value", quote(spec.IdempotencyKey)),
			"only ${LANJOBS_JOB_NAME} and what env gives at the top level are known before the job is there", "idempotency_key")
	}
	c.length("idempotency_window", spec.IdempotencyWindow, minWindow, maxWindow)
	c.length("retain", spec.Retain, minRetain, MaxLength)
	c.patience("deadline", spec.Deadline)
	c.patience("start_within", spec.StartWithin)
	if len(spec.Labels) > maxLabels {
		c.fault(fmt.Sprintf("more than %d labels", maxLabels), "", "labels")
	}
	for i, kv := range spec.Labels {
		field := "labels." + kv.Name
		if !validLabel(kv.Name) {
			c.fault(fmt.Sprintf("label %s is not allowed", quote(kv.Name)), "a label's name has letters, digits and - _ . /, begins with a letter or digit, and is at most 63 long", field)
		}
		if bad := badText(kv.Value); bad != "" || len(kv.Value) > maxLabelValue || hasControl(kv.Value, false) {
			c.fault(fmt.Sprintf("label %s: %s is not allowed", quote(kv.Name), quote(kv.Value)), fmt.Sprintf("one line of at most %d bytes", maxLabelValue), field)
		}
		if i > 0 && spec.Labels[i-1].Name >= kv.Name {
			c.fault("labels are not sorted, or one is there twice", "", field)
		}
	}
}

func (c *checker) files(files []task.File) {
	total := 0
	for i, f := range files {
		total += len(f.Data)
		if !fs.ValidPath(f.Name) || f.Name == "." || badText(f.Name) != "" || hasControl(f.Name, false) || strings.ContainsAny(f.Name, `\:`) {
			c.fault(fmt.Sprintf("files: %s is not allowed as a name", quote(f.Name)), `a relative name without .. and \ and :`, "files")
		}
		if f.Mode > 0o777 {
			c.fault(fmt.Sprintf("files: %s has mode 0%o", quote(f.Name), f.Mode), "", "files")
		}
		if i > 0 && files[i-1].Name >= f.Name {
			c.fault("files are not sorted, or one is there twice", "", "files")
		}
		if i > 0 && strings.HasPrefix(f.Name, files[i-1].Name+"/") {
			c.fault(fmt.Sprintf("files: %s is a file and a directory", quote(files[i-1].Name)), "", "files")
		}
	}
	if total > task.MaxFilesBytes {
		c.fault(fmt.Sprintf("files have %d KiB in all, more than %d", total>>10, task.MaxFilesBytes>>10), "big ones belong on a shared folder", "files")
	}
}

// size checks what the cluster would have to store.
func (c *checker) size(spec *task.Spec) {
	if bad := badText(spec.Source); bad != "" {
		c.fault("the source "+bad, "", "source")
	}
	if len(spec.Source) > task.MaxJobFileBytes {
		c.fault(fmt.Sprintf("the source is larger than %d KiB", task.MaxJobFileBytes>>10), "", "source")
	}
	data, err := json.Marshal(spec)
	if err != nil {
		c.fault("the job cannot be written as JSON: "+err.Error(), "", "source")
	} else if len(data) > task.MaxSpecBytes {
		c.fault(fmt.Sprintf("the job has %d KiB with its lists and files, more than %d", len(data)>>10, task.MaxSpecBytes>>10),
			"fewer or shorter shard items, or smaller files", "source")
	}
}
