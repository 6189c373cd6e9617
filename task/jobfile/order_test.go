package jobfile

import "testing"

func TestStagesStandAfterWhatTheyNeed(t *testing.T) {
	spec, faults := Load("x", []byte("name: x\njobs:\n  c: {needs: [a, b], run: x}\n  b: {needs: [a], run: x}\n  a: {run: x}\n  d: {run: x}\n"), Options{})
	if len(faults) > 0 {
		t.Fatal(Render("x", faults))
	}
	got := ""
	for _, s := range spec.Stages {
		got += s.Name
	}
	if got != "abcd" {
		t.Fatalf("stages in the order %s", got)
	}
}
