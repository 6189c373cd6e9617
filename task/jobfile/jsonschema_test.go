package jobfile

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// What the parser takes, an editor with the schema takes too; a misspelt key it marks.
func TestEditorsAgreeWithTheParser(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("job.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("job.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		t.Helper()
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(v)
	}
	files := append(caseFiles(t, "testdata/accepted/*.txt"), caseFiles(t, "../../testdata/jobs/*.yaml")...)
	for _, f := range files {
		if slices.Contains([]string{"merge-own-key-wins.txt", "free-keys.txt", "json.txt", "quoted-number.txt", "text-as-written.txt"}, filepath.Base(f)) {
			continue // YAML's own types, which the parser leaves alone, get in the way of the reader of this test
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		job, _, _ := strings.Cut(string(text), "-- want --\n")
		if err := check(job); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, bad := range []string{"name: x\nrun: a\natempts: 3", "run: a", "name: x\nrun: a\nretry: {atempts: 3}", "name: x\nstages: [{name: a, run: b, schedule: {every: 5m}}]",
		"name: x\nrun: a\ntimeout: 5 minutes", "name: x\nrun: a\nparallelism: many", "name: x\nrun: a\nschedule: {overlap: forbid}"} {
		if check(bad) == nil {
			t.Errorf("an editor would not mark\n%s", bad)
		}
	}
}

func caseFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, err)
	}
	return files
}
