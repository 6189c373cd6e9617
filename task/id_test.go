package task

import (
	"strings"
	"testing"
)

// What is asked for under an id is part of it; where one text ends and the next begins counts, too.
func TestARequestIDIsOfWhatIsAskedFor(t *testing.T) {
	long := RequestID(strings.Repeat("x", MaxRequestID))
	seen := map[RequestID]bool{}
	for _, r := range []RequestID{"a", "b", long, long[:MaxRequestID-1] + "y"} {
		for _, what := range [][][]byte{{[]byte("k"), []byte("v")}, {[]byte("kv"), nil}, {[]byte("k"), []byte("w")}, nil} {
			of := r.Of(what...)
			if !of.Valid() || seen[of] || of != r.Of(what...) {
				t.Errorf("%s of %q is %s", r, what, of)
			}
			seen[of] = true
		}
	}
	if RequestID("").Of([]byte("x")) != "" {
		t.Error("no id became one")
	}
}
