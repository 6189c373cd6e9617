package jobfile

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"lanjobs/task"
)

const hello = "name: x\nrun: echo hi\n"

// bytesCases are files that a text editor would not keep as they are.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       string // part of what is said; "" = accepted
		line, col  int
	}{
		{"byte-order mark", "\uFEFF" + hello, "", 0, 0},
		{"byte-order mark before JSON", "\uFEFF" + `{"name": "x", "run": "\ud83d\ude00"}`, "", 0, 0},
		{"UTF-16", "\xff\xfen\x00a\x00", "UTF-16", 0, 0},
		{"UTF-16 big endian", "\xfe\xff\x00n\x00a", "UTF-16", 0, 0},
		{"not UTF-8", "name: x\nrun: é \xff\n", "not UTF-8 (byte 0xFF", 2, 8},
		{"cut in a letter", hello + "description: \xc3", "not UTF-8 (byte 0xC3", 3, 14},
		{"NUL", "name: x\nrun: \x00\n", "U+0000", 2, 6},
		{"escape sign", "name: x\nrun: é\x1b[2J\n", "U+001B", 2, 7},
		{"noncharacter", "name: x\nrun: \uFFFE\n", "U+FFFE", 2, 6},
		{"CRLF with a fault", "name: x\r\nrun: a\r\nshrads: 2\r\n", `unknown key "shrads"`, 3, 1},
		{"old Mac line ends with a fault", "name: x\rrun: a\rshrads: 2\r", `unknown key "shrads"`, 3, 1},
		{"tab after colon", "name:\tx\nrun:\ta\n", "", 0, 0},
		{"lone surrogate", `{"name": "x", "run": "\ud83d"}`, "not a character", 1, 25},
		{"half a JSON", `{"name": "x", "run": "\ud83d\ude00`, "not a character", 1, 25},
		{"largest", hello + "# " + strings.Repeat("x", task.MaxJobFileBytes-len(hello)-2), "", 0, 0},
		{"larger", hello + "# " + strings.Repeat("x", task.MaxJobFileBytes-len(hello)-1), "larger than a job file", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, faults := Load("x", []byte(c.data), Options{})
			if c.want == "" {
				if spec == nil {
					t.Fatal(Render("x", faults))
				}
				if accepted(t, spec); spec.Source != c.data {
					t.Error("the source is not the file")
				}
				return
			}
			if spec != nil || len(faults) != 1 || !strings.Contains(faults[0].Message, c.want) || faults[0].Line != c.line || faults[0].Column != c.col {
				t.Errorf("got %+v, want %q at %d:%d", faults, c.want, c.line, c.col)
			}
		})
	}
}

func TestScriptsHaveUnixLineEnds(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"block of a file with CRLF", "name: x\r\nrun: |\r\n  echo a\r\n  echo b\r\n", "echo a\necho b\n"},
		{"folded", "name: x\r\nrun: >\r\n  echo a\r\n  b\r\n", "echo a b\n"},
		{"quoted stays as typed", "name: x\r\nrun: \"printf 'a\\r\\nb'\"\r\n", "printf 'a\r\nb'"},
		{"mark before #!", "name: x\nrun: |\n  \uFEFF#!/bin/sh\n  echo\n", "#!/bin/sh\necho\n"},
		{"escaped mark before #!", "name: x\nrun: \"\\uFEFF#!/bin/sh\"\n", "#!/bin/sh"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, faults := Load("x", []byte(c.data), Options{})
			if spec == nil {
				t.Fatal(Render("x", faults))
			}
			if got := spec.Stages[0].Run; got != c.want {
				t.Errorf("run is %q, want %q", got, c.want)
			}
		})
	}
}

// Linux takes 131,072 bytes, "A=" before and the end mark behind included.
func TestLargeValuesOfVariables(t *testing.T) {
	for size, ok := range map[int]bool{100 << 10: true, 131_069: true, 131_070: false, 200 << 10: false} {
		value := strings.Repeat("v", size)
		spec, faults := Load("x", []byte(hello+"env: {A: "+value+"}\n"), Options{})
		if (spec != nil) != ok {
			t.Errorf("%d bytes: %v", size, faults)
		}
		if ok && spec.Stages[0].Env[0].Value != value {
			t.Errorf("%d bytes: changed", size)
		}
	}
}

// A server reads no files for a client: it would be its own ones.
func TestWithoutFileSystemNothingIsExpanded(t *testing.T) {
	data := hello + "files: [a.sh, \"*.sh\"]\nshards: {lines: customers.txt}\n"
	spec, faults := Load("x", []byte(data), Options{})
	if spec != nil || len(faults) != 3 {
		t.Fatalf("got %v", faults)
	}
	for _, f := range faults {
		if !strings.Contains(f.Message, "on the submitting machine only") || !strings.Contains(f.Suggestion, "lanjobs submit") {
			t.Errorf("got %+v", f)
		}
	}
}

func TestWithoutDirectoryOnlyAbsoluteNames(t *testing.T) {
	o := Options{FS: disk}
	if spec, faults := Load("-", []byte(hello+"shards: {lines: customers.txt}\n"), o); spec != nil || !strings.Contains(faults[0].Message, "is relative") {
		t.Errorf("got %v", faults)
	}
	if spec, faults := Load("-", []byte(hello+"shards: {lines: /job/customers.txt}\n"), o); spec == nil || spec.Stages[0].Shards != 3 {
		t.Errorf("got %v", faults)
	}
}

func TestSetOverridesAllStages(t *testing.T) {
	data := "name: x\nenv: {A: top}\nstages:\n  - {name: a, run: a, env: {A: own, B: own}}\n  - {name: b, run: b}\n"
	spec, faults := Load("x", []byte(data), Options{Set: map[string]string{"env.A": "set", "env.C": "a=b"}})
	if spec == nil {
		t.Fatal(Render("x", faults))
	}
	want := [][]task.KV{{{Name: "A", Value: "set"}, {Name: "B", Value: "own"}, {Name: "C", Value: "a=b"}}, {{Name: "A", Value: "set"}, {Name: "C", Value: "a=b"}}}
	for i, w := range want {
		if !slices.Equal(spec.Stages[i].Env, w) {
			t.Errorf("stage %d: %v, want %v", i, spec.Stages[i].Env, w)
		}
	}
	for _, key := range []string{"timeout", "env.", "env.LANJOBS_X", "env.A=B", "labels.a"} {
		if spec, faults := Load("x", []byte(data), Options{Set: map[string]string{key: "1"}}); spec != nil || len(faults) != 1 || faults[0].Line != 0 {
			t.Errorf("--set %s: %v", key, faults)
		}
	}
}

func TestLoadIsTheSameEachTime(t *testing.T) {
	data := []byte("name: x\nrun: a\nlabels: {b: 1, a: 2, c: 3}\nenv: {D: 1, A: 2}\nretry: {permanent_on: [0], elsewhere_on: [0]}\nzz: 1\n")
	_, first := Load("x", data, Options{})
	for range 20 {
		if _, again := Load("x", data, Options{}); !reflect.DeepEqual(first, again) {
			t.Fatalf("first %v\nthen %v", first, again)
		}
	}
}

func TestFaultsNameTheirPath(t *testing.T) {
	data := "name: x\nretry: {max: 1s}\njobs:\n  a: {run: a, env: {LANJOBS_X: 1}, timeout: 5}\n  b: {run: b, needs: [c], lease: {ttl: 1s}}\n"
	_, faults := Load("x", []byte(data), Options{})
	var got []string
	for _, f := range faults {
		got = append(got, f.Path)
	}
	want := []string{"retry.max", "jobs.a.env.LANJOBS_X", "jobs.a.timeout", "jobs.b.needs[0]", "jobs.b.lease.ttl"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGlob(t *testing.T) {
	tree := fstest.MapFS{}
	for _, n := range []string{"a.txt", "b.txt", ".h.txt", "d/a.txt", "d/e/a.txt", "d/e/f/b.txt", "d/.g/a.txt", "[x].txt", "é.txt"} {
		tree[n] = &fstest.MapFile{}
	}
	for pattern, want := range map[string]string{
		"*.txt":         "[x].txt a.txt b.txt é.txt",
		"?.txt":         "a.txt b.txt é.txt",
		"[ab].txt":      "a.txt b.txt",
		`\[x].txt`:      "[x].txt",
		".*.txt":        ".h.txt",
		"**/a.txt":      "a.txt d/a.txt d/e/a.txt",
		"**/**/a.txt":   "a.txt d/a.txt d/e/a.txt",
		"d/**":          "d/a.txt d/e/a.txt d/e/f/b.txt",
		"d/**/e/*.txt":  "d/e/a.txt",
		"**/e/**/b.txt": "d/e/f/b.txt",
		"d/.g/*":        "d/.g/a.txt",
		"d/*":           "d/a.txt",
		"d":             "",
		"d/a.txt":       "d/a.txt",
		"a.txt/*":       "",
		"nope/*":        "",
		"nope":          "",
	} {
		got, err := glob(tree, pattern)
		slices.Sort(got)
		if s := strings.Join(slices.Compact(got), " "); err != nil || s != want {
			t.Errorf("%s: got %s (%v), want %s", pattern, s, err, want)
		}
	}
}

func TestLengths(t *testing.T) {
	for text, want := range map[string]task.Millis{"0": 0, "250ms": 250, "5s": 5 * task.Second, "5m": 5 * task.Minute, "1h30m": 90 * task.Minute,
		"1d": task.Day, "90s": 90 * task.Second, "3650d": MaxLength, "2d1ms": 2*task.Day + 1, "0s": 0} {
		got, err := ParseLength(text)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
		if back, err := ParseLength(FormatLength(got)); err != nil || back != got {
			t.Errorf("%s: written as %s", text, FormatLength(got))
		}
	}
	for _, text := range []string{"", "5", "-5m", "+5m", " 5m", "5m ", "5 m", "m", "1.5h", "5M", "1m1h", "5m5m", "3651d", "3650d1ms", "9223372036854775807ms", "99999999999999999999s", "5us", "00", "1h 30m", "٥s"} {
		if got, err := ParseLength(text); err == nil {
			t.Errorf("%q: taken as %s", text, FormatLength(got))
		}
	}
	for m, want := range map[task.Millis]string{0: "0", task.Day: "24h", 36 * task.Hour: "36h", 7 * task.Day: "7d", 90 * task.Second: "1m30s", -1500: "-1s500ms"} {
		if got := FormatLength(m); got != want {
			t.Errorf("%d: %s, want %s", m, got, want)
		}
	}
}
