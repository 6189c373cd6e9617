package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// longestWord bounds the words that are compared: nobody mistypes longer ones, and comparing costs their product.
const longestWord = 40

// suggestKey says which key was probably meant by an unknown one, and gives its name if it belongs to the same map.
func suggestKey(keys []key, word string) (suggestion, near string) {
	if len(word) <= longestWord {
		if k := alike(keys, word); k != nil {
			return fmt.Sprintf("did you mean %q?", k.name), k.name
		}
		if k := synonym(keys, word); k != nil {
			return callIt("", k, false), k.name
		}
		if w := nearest(names(keys), word); w != "" {
			return fmt.Sprintf("did you mean %q?", w), w
		}
		if s := suggestElsewhere(word); s != "" {
			return s, ""
		}
	}
	return "all keys: lanjobs help job.yaml (a newer lanjobs may know more)", ""
}

// suggestElsewhere looks for a word in all maps of the format.
func suggestElsewhere(word string) string {
	if k := alike(schema, word); k != nil {
		place := "a stage or one of jobs"
		switch {
		case k.in&inTop != 0:
			place = "the top level"
		case k.in == inJob:
			place = "one of jobs"
		case k.in == inStage:
			place = "a stage"
		}
		return fmt.Sprintf("%q belongs to %s", k.name, place)
	}
	for i := range schema {
		if k := alike(schema[i].sub, word); k != nil {
			return fmt.Sprintf("%q belongs into %s", k.name, schema[i].name)
		}
	}
	if k := synonym(schema, word); k != nil {
		return callIt("", k, false)
	}
	for i := range schema {
		if k := synonym(schema[i].sub, word); k != nil {
			return callIt(schema[i].name+".", k, schema[i].unbuilt)
		}
	}
	return ""
}

func callIt(prefix string, k *key, unbuilt bool) string {
	s := fmt.Sprintf("here it is called %q", prefix+k.name)
	switch {
	case unbuilt || k.unbuilt:
		return s + ", which is not built yet"
	case k.in == inJob:
		return `the order is written as "needs" in jobs: jobs: {b: {needs: [a], …}}`
	case k.like != "":
		return s + ", as in " + k.like
	}
	return s
}

func alike(keys []key, word string) *key {
	word = fold(word)
	for i := range keys {
		if fold(keys[i].name) == word && keys[i].instead == "" {
			return &keys[i]
		}
	}
	return nil
}

func synonym(keys []key, word string) *key {
	word = fold(word)
	for i := range keys {
		if slices.ContainsFunc(keys[i].also, func(s string) bool { return fold(s) == word }) {
			return &keys[i]
		}
	}
	return nil
}

func names(keys []key) []string {
	var out []string
	for _, k := range keys {
		if k.instead == "" {
			out = append(out, k.name)
		}
	}
	return out
}

// didYouMean is a suggestion for a word out of few, or their list.
func didYouMean(words []string, word string) string {
	if w := nearest(words, word); w != "" {
		return fmt.Sprintf("did you mean %q?", w)
	}
	if len(words) == 0 || len(words) > 12 {
		return ""
	}
	return "one of " + strings.Join(words, ", ")
}

// nearest gives the word that is a slip of the finger away, "" if none is: one slip, two in words of six letters and more.
func nearest(words []string, word string) string {
	if len(word) > longestWord {
		return ""
	}
	word = fold(word)
	limit := 1
	if len(word) >= 6 {
		limit = 2
	}
	best := ""
	for _, w := range words {
		if len(w) > longestWord || len(w) < 3 {
			continue
		}
		if diff := len(w) - len(word); diff > limit+2 || diff < -limit-2 {
			continue // the two are for - and _, which do not count
		}
		if d := task.EditDistance(fold(w), word); d <= limit {
			best, limit = w, d-1
		}
	}
	return best
}
