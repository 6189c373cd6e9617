package jobfile

import (
	"fmt"
	"strings"
	"testing"

	"lanjobs/task"
)

// What YAML does to a text on its way, in whole files; the letter Y is the row of the list of cases. got picks what is looked at
// in a file that is taken. want of a refused file is what is said of it, with the place, one line for each fault.
func TestCasesOfYAML(t *testing.T) {
	envOf := func(s *task.Spec) string { return fmt.Sprintf("%q", s.Stages[0].Env) }
	labels := func(s *task.Spec) string { return fmt.Sprintf("%q", s.Labels) }
	run := func(s *task.Spec) string { return fmt.Sprintf("%q", s.Stages[0].Run) }
	command := func(s *task.Spec) string { return fmt.Sprintf("%q", s.Stages[0].Command) }
	for _, c := range []struct {
		row, file string
		got       func(*task.Spec) string // nil = refused
		want      string
	}{
		{"Y01", hello + "env: {region: NO, DEBUG: off, V: 1.10, T: 22:22, Z: 010, D: 2024-01-02, Y: yes, E: 1e3, X: 0x1F, I: .inf}", envOf,
			`[{"region" "NO"} {"DEBUG" "off"} {"V" "1.10"} {"T" "22:22"} {"Z" "010"} {"D" "2024-01-02"} {"Y" "yes"} {"E" "1e3"} {"X" "0x1F"} {"I" ".inf"}]`},
		{"Y01", hello + "labels: {v: 1.10, region: NO, z: 010, d: 2024-01-02}", labels, `[{"d" "2024-01-02"} {"region" "NO"} {"v" "1.10"} {"z" "010"}]`},
		{"Y01", "name: no\ncommand: [echo, 1.10, yes, 010, null, ~, 2024-01-02, 1_000, '']", command, `["echo" "1.10" "yes" "010" "null" "~" "2024-01-02" "1_000" ""]`},
		{"Y01", "name: 007\nrun: true\n", run, `"true"`},

		{"Y04", "x-base: &base {A: base, B: base}\n" + hello + "env:\n  A: own\n  <<: *base\n", envOf, `[{"A" "own"} {"B" "base"}]`},
		{"Y04", "x-base: &base {A: base, B: base}\n" + hello + "env:\n  <<: *base\n  A: own\n", envOf, `[{"A" "own"} {"B" "base"}]`},
		{"Y04", "x-a: &a {A: a}\nx-b: &b {A: b, B: b}\n" + hello + "env: {<<: [*a, *b]}\n", envOf, `[{"A" "a"} {"B" "b"}]`},
		{"Y04", hello + "base: &base {A: b}\nenv: *base\n", nil, `3:1 unknown key "base": a key that only holds an anchor begins with x-: write x-base`},
		{"Y04", hello + "env: *base\n", nil, `3:6 unknown anchor "base" referenced: put the text in quotes if the * is meant; an anchor (&name) must stand before its use`},

		{"Y05", hello + "name: again\n", nil, `3:1 key "name" is given twice, first at line 1: remove one of them`},
		{"Y05", hello + "env:\n  A: 1\n  A: 2\n", nil, `5:3 key "A" is given twice, first at line 4: remove one of them`},
		{"Y05", "x-b: &b {A: 1}\n" + hello + "env:\n  <<: *b\n  <<: *b\n", nil, `6:3 key "<<" is given twice, first at line 5: remove one of them`},
		{"Y05", hello + "Name: y\n", nil, `3:1 unknown key "Name": "name" is given at line 1`},

		{"Y06", hello + "env:\n\tA: 1\n", nil, "4:1 a tab in the indentation; YAML indents with spaces only: write spaces instead of the tab"},
		{"Y06", "name: x\nrun: |\n\techo hi\n", nil, "3:1 a tab in the indentation; YAML indents with spaces only: write spaces instead of the tab"},
		{"Y06", hello + "env:\n  A:\t1\n", envOf, `[{"A" "1"}]`},

		{"Y08", "name: x\r\nrun: |\r\n  echo a\r\n  echo b\r\n", run, `"echo a\necho b\n"`},
		{"Y08", "name: x\r\ncommand: [a, 'b c', \"a\\r\\nb\"]\r\n", command, `["a" "b c" "a\r\nb"]`},
		{"Y08", "\uFEFFname: x\nrun: \"\uFEFF#!/bin/sh\"\n", run, `"#!/bin/sh"`},

		{"Y17", "name: 备份-每日\nrun: a\n", nil, `1:7 job name "备份-每日" is not allowed: a name has only a-z, 0-9 and -, begins with a letter or digit, and is at most 63 long`},
		{"Y17", "name: A/b\nrun: a\n", nil, `1:7 job name "A/b" is not allowed: write a-b`},
		{"Y17", "name: \" nightly \"\nrun: a\n", nil, `1:7 job name " nightly " is not allowed: write nightly`},
		{"Y17", "name: " + strings.Repeat("a", 64) + "\nrun: a\n", nil,
			`1:7 job name "` + strings.Repeat("a", 60) + `"… is not allowed: a name has only a-z, 0-9 and -, begins with a letter or digit, and is at most 63 long`},
		{"Y17", "name: \"a\\0b\"\nrun: a\n", nil, `1:7 name has a NUL character, which no program can be given`},
		{"Y17", "name: \"\\e[31mx\"\nrun: a\n", nil, `1:7 job name "\x1b[31mx" is not allowed: a name has only a-z, 0-9 and -, begins with a letter or digit, and is at most 63 long`},
		{"Y17", "name: ..\nrun: a\n", nil, `1:7 job name ".." is not allowed: a name has only a-z, 0-9 and -, begins with a letter or digit, and is at most 63 long`},

		{"Y19", hello + "env: {NULL: a, null: b, ~: c, \"1A\": d, A B: e, PATH: /x}\n", envOf,
			`[{"NULL" "a"} {"null" "b"} {"~" "c"} {"1A" "d"} {"A B" "e"} {"PATH" "/x"}]`},
		{"Y19", hello + "labels: {NULL: a}\n", labels, `[{"NULL" "a"}]`},
		{"Y19", hello + "env:\n  A: null\n  B:\n  C: \"a\\nb=$X ${Y}\"\n", envOf, `[{"A" "null"} {"B" ""} {"C" "a\nb=$X ${Y}"}]`},
		{"Y19", hello + "env: {\"A=B\": a, \"\": b}\n", nil, "3:7 env \"A=B\": a variable's name has no =\n3:17 env has a variable without a name"},
		{"Y19", hello + "env: {A: \"a\\0b\"}\n", nil, `3:10 env "A" has a NUL character, which no program can be given`},
		{"Y19", hello + "env: {\"A\\0B\": a}\n", nil, `3:7 env "A\x00B": a variable's name has no control characters`},
		{"Y19", hello + "env: {LANJOBS_SHARD: 1}\n", nil, `3:7 env "LANJOBS_SHARD": LANJOBS and LANJOBS_… are set by lanjobs itself`},
		{"Y19", hello + "env:\n  A: [a]\n", nil, `4:6 env "A" takes one text, not a list or map: put it in quotes if these signs are meant`},
		{"Y19", hello + "env: [\"A=b\"]\n", nil, `3:6 env takes names with values, not a list: write env: {A: "b"}`},

		{"", "name: x\nrun:a\n", nil, `2:1 no blank after the ":" here: write run: a`},
		{"", "name: x\nrun a\n", nil, `2:1 a key without ":" here: write "key: value"; further lines of a text must be indented more than its key`},
		{"", "name: x\nrun: 'it's'\n", nil, `2:10 the text in quotes has ended before this: inside '…' write '' for one ', inside "…" write \" for one "; or use a block: a | and the text below it, indented`},
		{"", "name: x\nrun: {{ item }}\n", nil, `2:6 run takes one value, not a list or map: put the text in quotes if these signs are meant`},
		{"", "name: x\njobs: {a: {run: x, name: b}}\n", nil, `2:20 unknown key "name" in jobs.a: the name of one of jobs is its key: a`},
	} {
		t.Run(strings.TrimSpace(c.row+" "+c.file), func(t *testing.T) {
			spec, faults := Load("job.yaml", []byte(c.file), Options{})
			var told []string
			for _, f := range faults {
				text := fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Message)
				if f.Suggestion != "" {
					text += ": " + f.Suggestion
				}
				told = append(told, text)
			}
			switch got := strings.Join(told, "\n"); {
			case c.got == nil && got != c.want:
				t.Errorf("refused with\n%s\nwant\n%s", got, c.want)
			case c.got == nil:
			case spec == nil:
				t.Errorf("refused with\n%s", got)
			case c.got(spec) != c.want:
				t.Errorf("%s\nwant\n%s", c.got(spec), c.want)
			default:
				accepted(t, spec)
			}
		})
	}
}
