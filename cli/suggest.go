package cli

import (
	"strings"

	"lanjobs/task"
)

// nearest is task.Nearest, and without such a word the only one that begins so. "" if none.
func nearest(words []string, word string) string {
	if w := task.Nearest(words, word); w != "" || len(word) < 2 {
		return w
	}
	begins := ""
	for _, w := range words {
		if strings.HasPrefix(w, strings.ToLower(word)) {
			if begins != "" {
				return "" // more than one: no guess
			}
			begins = w
		}
	}
	return begins
}
