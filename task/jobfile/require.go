package jobfile

import (
	"fmt"
	"strings"

	"lanjobs/task"
)

const requireForms = `write gpu=true, arch!=arm, "os in (linux,darwin)" with quotes, or ssd (the label exists)`

// conditions types placement.require and placement.prefer.
func (l *loader) conditions(s *scope, field string) []task.Requirement {
	var out []task.Requirement
	for i, text := range get(s, field, []string(nil)) {
		r, ok := ParseRequirement(text)
		if !ok {
			path := l.owner(s, fmt.Sprintf("%s[%d]", field, i))
			l.faultAt(l.places[path], path, fmt.Sprintf("%s %s is not a condition", field, quote(text)), requireForms)
			continue
		}
		out = append(out, r)
	}
	return out
}

// ParseRequirement reads one condition on a machine (R34): gpu=true, arch!=arm, os in (linux,darwin), ssd.
func ParseRequirement(text string) (task.Requirement, bool) {
	text = strings.TrimSpace(text)
	r := task.Requirement{Label: text, Op: task.OpExists}
	if label, list, ok := strings.Cut(text, " in "); ok {
		list, opened := strings.CutPrefix(strings.TrimSpace(list), "(")
		list, closed := strings.CutSuffix(list, ")")
		if !opened || !closed {
			return r, false
		}
		r = task.Requirement{Label: strings.TrimSpace(label), Op: task.OpIn}
		for v := range strings.SplitSeq(list, ",") {
			r.Values = append(r.Values, strings.TrimSpace(v))
		}
	} else if label, value, ok := strings.Cut(text, "!="); ok {
		r = task.Requirement{Label: strings.TrimSpace(label), Op: task.OpNotEqual, Values: []string{strings.TrimSpace(value)}}
	} else if label, value, ok := strings.Cut(text, "="); ok {
		r = task.Requirement{Label: strings.TrimSpace(label), Op: task.OpEqual, Values: []string{strings.TrimSpace(value)}}
	}
	return r, validRequirement(r)
}

func validRequirement(r task.Requirement) bool {
	wanted := map[task.Op]bool{task.OpEqual: len(r.Values) == 1, task.OpNotEqual: len(r.Values) == 1,
		task.OpIn: len(r.Values) > 0, task.OpExists: len(r.Values) == 0}
	if !validLabel(r.Label) || !wanted[r.Op] {
		return false
	}
	for _, v := range r.Values {
		if v == "" && r.Op == task.OpIn || len(v) > maxLabelValue || strings.ContainsAny(v, "=!<>(),") || badText(v) != "" || hasControl(v, true) {
			return false
		}
	}
	return true
}
