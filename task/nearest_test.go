package task

import (
	"strings"
	"testing"
)

// A word of which every letter would have to be another one was not meant.
func TestNearestKeepsSomething(t *testing.T) {
	for _, word := range []string{"備份", "x", "ab"} {
		if got := Nearest([]string{"l1", "y", "é"}, word); got != "" {
			t.Errorf("%s: %s", word, got)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"transcode", "score", "nas", "größe"}
	for word, want := range map[string]string{
		"transcode": "transcode", "trasncode": "transcode", "TRANSCOD": "transcode", "trancsdoe": "transcode", "trnscd": "",
		"nsa": "nas", "mas": "nas", "mos": "", "grosse": "", "grösse": "größe", "": "", strings.Repeat("x", MaxNameLength+1): "",
	} {
		if got := Nearest(words, word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest([]string{"scare", "score"}, "score"); got != "score" {
		t.Errorf("an exact word gives way to %q", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"ab", "abc", 1},
		{"ca", "abc", 3}, {"kitten", "sitting", 3}, {"ä", "a", 1},
	} {
		if got := EditDistance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
