package task

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// What is not in the list cannot be asked for.
func TestEventKindsAreComplete(t *testing.T) {
	source, err := os.ReadFile("event.go")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []EventKind
	for _, m := range regexp.MustCompile(`EventKind = "([a-z.]+)"`).FindAllStringSubmatch(string(source), -1) {
		kinds = append(kinds, EventKind(m[1]))
	}
	if len(kinds) < 40 || !slices.Equal(kinds, EventKinds) {
		t.Errorf("%d kinds, %d in the list: %v", len(kinds), len(EventKinds), EventKinds)
	}
}
