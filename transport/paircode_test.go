package transport_test

import (
	"errors"
	"strings"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

func TestPairCodes(t *testing.T) {
	seen := map[transport.PairCode]bool{}
	for range 1000 {
		c := transport.NewPairCode()
		if seen[c] {
			t.Fatalf("%s twice", c)
		}
		seen[c] = true
		if text := c.String(); len(text) != 9 || text[4] != '-' || strings.ContainsAny(text, "ILOU") {
			t.Fatalf("shown as %s", text)
		}
		for _, typed := range []string{c.String(), strings.ToLower(c.String()), string(c), " " + string(c) + "\n", string(c[:4]) + " " + string(c[4:]), string(c[:4]) + "–" + string(c[4:]),
			strings.NewReplacer("0", "O", "1", "l").Replace(c.String()), strings.NewReplacer("0", "o", "1", "I").Replace(c.String())} {
			if got, err := transport.ParsePairCode(typed); err != nil || got != c {
				t.Fatalf("%q is read as %q, %v", typed, got, err)
			}
		}
	}
}

func TestNoPairCodes(t *testing.T) {
	for typed, why := range map[string]string{
		"":                       "it has 0 characters, not 8",
		"K7QF-2M9":               "it has 7 characters, not 8",
		"K7QF-2M9XX":             "it has 9 characters, not 8",
		"K7QF-2M9U":              "codes have no U",
		"K7QF-2M9é":              "codes have no É",
		"K7QF/2M9":               "codes have no /",
		"LJ1-K7QF":               "it has 7 characters",
		strings.Repeat("x", 999): "it has 999 characters",
	} {
		_, err := transport.ParsePairCode(typed)
		p, ok := errors.AsType[*task.Problem](err)
		if !ok || !errors.Is(err, task.ErrInvalid) || !strings.Contains(p.Detail, why) || len(p.Detail) > 120 {
			t.Errorf("%q: %v, want %q", typed, err, why)
		}
	}
}
