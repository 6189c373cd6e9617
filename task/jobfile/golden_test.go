package jobfile

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"lanjobs/task"
)

var update = flag.Bool("update", false, "write what comes out into the files of testdata")

// disk is what the job files of the tests may refer to.
func disk(dir string) fs.FS {
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }
	program := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o755} }
	all := fstest.MapFS{
		"job/b.sh": program("echo b\n"), "job/a.sh": program("echo a\n"), "job/.hidden.sh": text("x"),
		"job/sub/c.sh": text("echo c\n"), "job/sub/deep/er/d.sh": text("echo d\n"), "job/sub/.git/e.sh": text("x"),
		"job/score.py": text("print(1)\n"), "job/train.py": text("print(2)\n"), "job/invoice.py": text("print(3)\n"),
		"job/fetch.sh":      program("f\n"),
		"job/customers.txt": text("\uFEFFanna\r\n\r\nben  b\n   \ncarl"), "job/latin1.txt": text("ok\ncaf\xe9\n"), "job/blank.txt": text("\n \n"),
		"job/big/1": text(strings.Repeat("1", 200<<10)), "job/big/2": text(strings.Repeat("2", 100<<10)),
		"mnt/photos/in/a.jpg": text(""), "mnt/photos/in/b.JPG": text(""), "mnt/photos/in/c.png": text(""),
		"mnt/photos/in/2024/d.jpg": text(""), "mnt/photos/in/2024/._d.jpg": text(""), "mnt/photos/in/.h.png": text(""),
		"mnt/photos/in/2024/x.jpg/inside.jpg": text(""),
		"mnt/nas/photos/in/a.jpg":             text(""), "mnt/nas/photos/in/sub/b.png": text(""),
	}
	dir = strings.Trim(dir, "/")
	if dir == "" {
		return all
	}
	sub, err := fs.Sub(all, dir)
	if err != nil {
		panic(err)
	}
	return sub
}

var beside = Options{Dir: "/job", FS: disk, Now: time.Date(2026, 11, 29, 19, 0, 0, 0, time.UTC)}

// golden runs one function over the files of a folder: the input, a line "-- want --", what must come out.
func golden(t *testing.T, folder string, got func(t *testing.T, input string) string) {
	const mark = "-- want --\n"
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, ok := strings.Cut(string(data), mark)
			if !ok {
				t.Fatalf("%s has no line %q", file, mark)
			}
			out := got(t, input)
			if *update {
				if err := os.WriteFile(file, []byte(input+mark+out), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if out != want {
				t.Errorf("input:\n%s\ngot:\n%s\nwant:\n%s", input, out, want)
			}
		})
	}
}

func TestRefusedFilesAreExplained(t *testing.T) {
	golden(t, "refused", func(t *testing.T, input string) string {
		spec, faults := Load("job.yaml", []byte(input), beside)
		if spec != nil || len(faults) == 0 {
			t.Errorf("accepted")
		}
		return Render("job.yaml", faults)
	})
}

func TestAcceptedFilesBecomeSpecs(t *testing.T) {
	golden(t, "accepted", func(t *testing.T, input string) string {
		spec, faults := Load("job.yaml", []byte(input), beside)
		if spec == nil {
			t.Fatal(Render("job.yaml", faults))
		}
		return show(t, spec)
	})
}

func TestExamplesOfTheManual(t *testing.T) {
	golden(t, "examples", func(t *testing.T, input string) string {
		spec, faults := Load("job.yaml", []byte(input), beside)
		if spec == nil {
			for _, f := range faults {
				if !strings.HasSuffix(f.Message, " is not built yet") {
					t.Errorf("refused for another reason: %s", f.Message)
				}
			}
			return Render("job.yaml", faults)
		}
		return show(t, spec)
	})
}

func TestHelpIsMadeOfTheTable(t *testing.T) {
	golden(t, "help", func(*testing.T, string) string { return SchemaHelp() })
}

// usual is the stage of a file that says nothing about it.
var usual = task.StageSpec{
	When: task.WhenSuccess, Shell: "auto", Shards: 1, Timeout: 24 * task.Hour,
	Lease: task.LeaseTerms{TTL: 5 * task.Minute, Heartbeat: 30 * task.Second, StopGrace: 30 * task.Second},
	Retry: task.RetryPolicy{Attempts: 3, Initial: 10 * task.Second, Factor: 2, Max: 10 * task.Minute, JitterPct: 20,
		LeaseLosses: 10, PermanentOn: []int{64, 65, 66, 78}, ElsewhereOn: []int{69, 77, 126, 127}},
	Success:   task.Success{Percent: 100},
	Resources: task.Resources{MilliCPU: 1000},
}

// show writes a Spec as JSON without what it shares with one of which nothing was said.
func show(t *testing.T, spec *task.Spec) string {
	t.Helper()
	accepted(t, spec)
	out := differ(t, spec, task.Spec{Queue: "default", Priority: 50, IdempotencyWindow: 7 * task.Day, Retain: 30 * task.Day, Source: spec.Source})
	stages := []map[string]any{}
	for _, s := range spec.Stages {
		stages = append(stages, differ(t, s, usual))
	}
	out["stages"] = stages
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(out); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// differ gives the fields of a value that another one has not or has otherwise.
func differ(t *testing.T, v, from any) map[string]any {
	t.Helper()
	a, b := map[string]any{}, map[string]any{}
	for _, p := range []struct {
		v any
		m *map[string]any
	}{{v, &a}, {from, &b}} {
		data, err := json.Marshal(p.v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, p.m); err != nil {
			t.Fatal(err)
		}
	}
	for k, w := range b {
		if reflect.DeepEqual(a[k], w) {
			delete(a, k)
		}
	}
	return a
}

// accepted checks what holds for every Spec that Load returns.
func accepted(t *testing.T, spec *task.Spec) {
	t.Helper()
	if faults := Check(spec, time.Time{}); len(faults) > 0 {
		t.Errorf("loaded, but Check refuses it: %v", faults)
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var back task.Spec
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, spec) {
		t.Errorf("changed by a trip through JSON:\n%+v\n%+v", &back, spec)
	}
}
