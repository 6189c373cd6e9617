package jobfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLoad: nothing crashes; what is accepted passes Check and stays the same through JSON; what is refused is told at
// places that exist.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		input, _, _ := strings.Cut(string(data), "-- want --\n")
		f.Add([]byte(input))
	}
	f.Add([]byte("\uFEFFname: x\r\nrun: |\r\n  a\r\n"))
	f.Add([]byte("name: x\nrun: \"\\uFEFF\\x85\\u2028\\0\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, faults := Load("job.yaml", data, beside)
		if (spec == nil) == (len(faults) == 0) {
			t.Fatalf("spec %v, faults %v", spec, faults)
		}
		if spec != nil {
			accepted(t, spec)
			return
		}
		lines := splitLines(strings.ToValidUTF8(string(data), "\uFFFD"))
		for _, f := range faults {
			if f.Line < 0 || f.Line > len(lines)+1 || f.Line > 0 && f.Column < 1 || f.Message == "" || f.Width < 0 {
				t.Errorf("a fault nowhere: %+v", f)
			}
			if f.Excerpt != "" && utf8.RuneCountInString(f.Excerpt) > longestExcerpt {
				t.Errorf("a long excerpt: %+v", f)
			}
		}
		if out := Render("job.yaml", faults); !utf8.ValidString(out) || strings.ContainsAny(out, "\x00\x1b\r") {
			t.Errorf("not fit to be shown: %q", out)
		}
	})
}
