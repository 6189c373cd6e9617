package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"lanjobs/task"
)

// outcomeOf turns what the guard saw into what is reported. It is pure. A Windows exit code has 32 bits without a sign
// (0xC0000005 is an access violation); the ledger keeps 32 with one, as PowerShell shows them.
func outcomeOf(e *exitRecord) task.Outcome {
	o := task.Outcome{ExitCode: int(int32(e.Code)), Signal: e.Signal, RunMillis: e.RunMillis}
	switch {
	case e.Unmet != "":
		o.End, o.Message = task.EndUnmet, e.Unmet
	case e.StartError != "":
		o.End, o.Message = task.EndStartFailed, e.StartError
	case e.GuardDied:
		o.End, o.Message = task.EndLeaseLost, "its guard process died, so it was killed"
	case e.Reason == task.StopStalled && e.Silent > 0:
		o.End, o.Message = task.EndStalled, "no output, progress or checkpoint for "+length(e.Silent)
	case e.Reason != "":
		o.End, o.Message = e.Reason.End(), "stopped: "+string(e.Reason)
	case e.OOM && e.MemoryMB > 0 && (e.Signal != 0 || e.Code != 0):
		o.End, o.Message = task.EndOutOfMemory, "out of memory: limit "+memorySize(e.MemoryMB)
	case e.Signal != 0 && e.OOM:
		o.End, o.Message = task.EndOutOfMemory, fmt.Sprintf("killed by signal %d (out of memory)", e.Signal)
	case e.Signal != 0:
		o.End, o.Message = task.EndSignal, fmt.Sprintf("killed by signal %d", e.Signal)
	default:
		o.End = task.EndExited
		if e.OOM {
			o.Message = "the kernel killed one of its processes: out of memory"
		}
	}
	if len(e.Survivors) > 0 {
		o.Message = strings.TrimPrefix(fmt.Sprintf("%s; processes that do not die: %v", o.Message, e.Survivors), "; ")
	}
	o.Message = oneLine(o.Message)
	return o
}

// wantsTail: a failure's reason is mostly in its last lines. What was cancelled or moved has not failed.
func wantsTail(o task.Outcome) bool {
	switch o.End {
	case task.EndExited:
		return o.ExitCode != 0
	case task.EndSignal, task.EndOutOfMemory, task.EndTimeout, task.EndStalled:
		return true
	}
	return false
}

// oneLine makes a text fit to be a Message.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	for len(s) > task.MaxMessageLength {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// readOutputs reads a LANJOBS_OUTPUT file: lines of name=value. A later line with the same name wins. No file is no outputs.
func readOutputs(path string) ([]task.KV, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > 4*task.MaxShardOutputBytes { // lines that a later one replaces may be many, but not without end
		return nil, fmt.Errorf("%d bytes, at most %d are taken: store the data elsewhere and register its name", info.Size(), task.MaxShardOutputBytes)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseOutputs(data)
}

func parseOutputs(data []byte) ([]task.KV, error) {
	var out []task.KV
	at := map[string]int{}
	n := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		n++
		text := strings.TrimRight(string(line), "\r\n")
		if text == "" {
			continue
		}
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("line %d is not name=value: %q", n, clip(text))
		}
		kv := task.KV{Name: name, Value: value}
		if err := checkOutput(kv); err != nil {
			return nil, fmt.Errorf("line %d: %w: %s", n, err, task.Explain(err).Hint)
		}
		if i, ok := at[name]; ok {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	total := 0
	for _, kv := range out {
		total += len(kv.Name) + len(kv.Value)
	}
	if total > task.MaxShardOutputBytes {
		return nil, fmt.Errorf("%d bytes of outputs, at most %d are taken: store the data elsewhere and register its name", total, task.MaxShardOutputBytes)
	}
	return out, nil
}

// checkOutput holds for the file and for PUT /v1/outputs alike. A value of several lines, which the file cannot hold, is a list:
// shards of a later stage may be made of it (shards: {from: …}, R23).
func checkOutput(kv task.KV) error {
	switch {
	case !outputName(kv.Name):
		return task.NewProblem(task.ErrInvalid, fmt.Sprintf("output name %q is not allowed", clip(kv.Name)), fmt.Sprintf("use letters, digits, _ - and ., at most %d", task.MaxNameLength))
	case len(kv.Value) > task.MaxOutputBytes:
		return task.NewProblem(task.ErrTooLarge, fmt.Sprintf("output %s has %d bytes, at most %d are taken", kv.Name, len(kv.Value), task.MaxOutputBytes), "store the data elsewhere and register its name")
	case !utf8.ValidString(kv.Value) || strings.ContainsAny(kv.Value, "\x00\r"):
		return task.NewProblem(task.ErrInvalid, fmt.Sprintf("output %s is not UTF-8 text in lines without NUL and CR", kv.Name), "store the data elsewhere and register its name")
	}
	return nil
}

func outputName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= task.MaxNameLength
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
