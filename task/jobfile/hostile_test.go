package jobfile

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// Each of these would take long or much memory if anything followed or multiplied it before looking at its size (Y21 of the list
// of cases). An alias inside itself is refused/alias-in-itself.txt.
func TestHostileFilesCostLittle(t *testing.T) {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, data := range map[string]string{
		"50 MB":            strings.Repeat("a", 50<<20),
		"100,000 brackets": hello + "x: " + strings.Repeat("[", 100_000),
		"9,000 brackets":   hello + "x: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000),
		"100,000 dashes":   strings.Repeat("- ", 100_000),
		"100,000 values":   hello + "env:\n" + lines(100_000, "  A%d: 1\n"),
		"bomb":             hello + "x-0: &a0 [a,a,a,a,a,a,a,a,a]\n" + lines(9, "x-%d1: &a%[1]d1 [*a0,*a0]\n") + bomb(),
		"merge bomb":       hello + "x-a: &a\n" + lines(10_000, "  A%d: \n") + "env: {<<: [" + strings.Repeat("*a,", 10_000) + "]}",
		"wrong names":      hello + "env:\n" + lines(15_000, "  A=%d: \n"),
		"unknown keys":     hello + lines(12_000, "parallelissssm%d: \n"),
		"needs":            "name: x\njobs: {a: {run: x, needs: [" + strings.Repeat("b,", 100_000) + "]}}",
		"shard key":        hello + "shard_key: \"" + strings.Repeat("${LANJOBS_ITEM}", 17_000) + "\"",
		"weights":          hello + "shards: {count: 2, weights: [" + strings.Repeat("0,", 100_000) + "]}",
		"programs":         hello + "placement: {programs: [" + strings.Repeat("b,", 100_000) + "]}",
		"stages from":      "name: x\nstages:\n" + lines(100, "- {name: s%d, run: x, shards: {from: s0.x}, shard_key: \"${LANJOBS_ITEM}\"}\n") + "queue: A",
		"exit codes":       hello + "retry: {permanent_on: [" + strings.Repeat("1,", 100_000) + "]}",
		"one long line":    hello + "env: {" + strings.Repeat("a: , ", 50_000) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			input := []byte(data)
			var before, after runtime.MemStats
			var spec *task.Spec
			var faults []task.Fault
			took := time.Hour
			for try := 0; try < 5 && took > 3*time.Second; try++ { // others may keep the machine busy
				runtime.ReadMemStats(&before)
				start := time.Now()
				spec, faults = Load("x", input, Options{})
				took = min(took, time.Since(start))
				runtime.ReadMemStats(&after)
			}
			if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 200 {
				t.Errorf("allocated %d MB", mb)
			}
			if spec != nil {
				t.Error("accepted")
			}
			if len(faults) > maxFaults+1 || len(Render("x", faults)) > 100<<10 {
				t.Errorf("%d faults", len(faults))
			}
			// Ten times what it takes on a slow machine, and a tenth of what it took before there were bounds.
			if took > 3*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// bomb is nine levels of nine.
func bomb() string {
	var b strings.Builder
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "x-b%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}
