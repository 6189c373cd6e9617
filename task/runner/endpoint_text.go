package runner

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"lanjobs/task"
)

// progressText reads what tasks send as progress: "40%", "3/10", "done=3&total=10", "percent=40", any with a text behind it
// ("3/10 encoding", "done=3&total=10&text=encoding") or a text alone. The result is "3/10 encoding".
func progressText(body string) (string, error) {
	body = strings.TrimSpace(body)
	form, err := url.ParseQuery(body)
	isForm := err == nil && (form.Has("done") || form.Has("percent") || form.Has("text"))
	text := body
	if isForm {
		var parts []string
		switch {
		case form.Has("done") && form.Has("total"):
			parts = append(parts, form.Get("done")+"/"+form.Get("total"))
		case form.Has("done"):
			parts = append(parts, form.Get("done"))
		case form.Has("percent"):
			parts = append(parts, strings.TrimSuffix(form.Get("percent"), "%")+"%")
		}
		text = strings.Join(append(parts, form.Get("text")), " ")
	}
	if text = oneLine(text); text == "" {
		return "", task.NewProblem(task.ErrInvalid, "progress is empty", "send 40%, 3/10 or done=3&total=10")
	}
	return text, nil
}

// inputLines writes a line for each line of a value, so that a reader who splits at line ends and tabs is never wrong.
func inputLines(inputs []Input, name string, missing bool) string {
	var b strings.Builder
	for _, in := range inputs {
		if missing {
			fmt.Fprintln(&b, in.Shard)
			continue
		}
		for line := range strings.SplitSeq(in.Value, "\n") {
			if name == "" {
				fmt.Fprintf(&b, "%d\t%s\t", in.Shard, in.Name)
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// parseIfMatch reads If-Match: 7 or "7"; 0, like If-None-Match: *, asks that the key be absent. No header: whatever it is.
func parseIfMatch(h http.Header) (*uint64, error) {
	match, none := h.Values("If-Match"), h.Values("If-None-Match")
	text := strings.TrimSpace(strings.Join(match, ", "))
	switch {
	case len(match) == 0 && len(none) == 0:
		return nil, nil
	case len(match) == 0 && len(none) == 1 && none[0] == "*":
		text = "0"
	case len(none) > 0:
		return nil, task.NewProblem(task.ErrInvalid, "If-None-Match is * alone, and goes without If-Match", "")
	}
	v, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 64)
	if err != nil {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("If-Match %q is not a version", text), `send the ETag of the last read, or "0" for a new key`)
	}
	return &v, nil
}

// requestID reads the id that a task gave its write, "" if it gave none.
func requestID(h http.Header) (task.RequestID, error) {
	id := task.RequestID(h.Get(task.HeaderRequestID))
	if id != "" && !id.Valid() {
		return "", task.NewProblem(task.ErrInvalid, fmt.Sprintf("%s is up to %d letters, digits and signs", task.HeaderRequestID, task.MaxRequestID), "")
	}
	return id, nil
}

// parseWait reads "10m" or "wait=10m".
func parseWait(body string) (task.Millis, error) {
	text := strings.TrimPrefix(strings.TrimSpace(body), "wait=")
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || task.MillisOf(d) > 30*task.Day {
		return 0, task.NewProblem(task.ErrInvalid, fmt.Sprintf("%q is not a length of time up to 30 days", clip(text)), "write 10m")
	}
	return task.MillisOf(d), nil
}

// readStop is the reason in a LANJOBS_STOP file, "" while there is none.
func readStop(path string) string {
	b, err := readRegular(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
