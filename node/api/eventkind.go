package api

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// eventKind refuses what is no kind of event: it would only ever find nothing.
func eventKind(kind string) error {
	var nouns, words []string
	for _, k := range task.EventKinds {
		noun, _, _ := strings.Cut(string(k), ".")
		if kind == noun || kind == string(k) {
			return nil
		}
		if words = append(words, string(k)); !slices.Contains(nouns, noun) {
			nouns = append(nouns, noun)
		}
	}
	detail := "no event is called " + shown(kind) + "."
	if near := task.Nearest(append(words, nouns...), kind); near != "" {
		detail += fmt.Sprintf(" Did you mean %q?", near)
	}
	noun, _, _ := strings.Cut(kind, ".")
	var alike []string
	for _, w := range words {
		if strings.HasPrefix(w, noun+".") {
			alike = append(alike, w)
		}
	}
	if len(alike) > 0 {
		return invalid(detail, "Those of "+noun+": "+strings.Join(alike, ", "))
	}
	return invalid(detail, "One kind, as lease.expire, or all of "+strings.Join(nouns, ", "))
}
