package jobfile

import (
	"testing"

	"lanjobs/task"
)

func TestSizesAndProcessors(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "1Mi": 1, "512Mi": 512, "4Gi": 4096, "1.5Gi": 1536, "0.3Mi": 1, "1024Ti": task.MaxResourceMB} {
		if got, ok := megabytes(text); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "1", "1M", "1mi", "-1Mi", "1 Mi", "Mi", ".5Gi", "1025Ti", "999999999Ti", "01Mi", "1e3Mi", "0x1Mi"} {
		if got, ok := megabytes(text); ok {
			t.Errorf("%q: taken as %d", text, got)
		}
	}
	for text, want := range map[string]int{"1": 1000, "0.5": 500, "0.001": 1, "1024": task.MaxMilliCPU, "2.125": 2125} {
		if got, ok := milliCPU(text); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "0", "0.0", "0.0004", "0.0006", "1.0001", "1024.001", "500m", "-1", "NaN", "999999999"} {
		if got, ok := milliCPU(text); ok {
			t.Errorf("%q: taken as %d", text, got)
		}
	}
}

func TestRangesOfNumbers(t *testing.T) {
	for text, want := range map[string]task.RangeSpec{"0-0": {End: 1}, "5-10": {Start: 5, End: 11}, "0-9007199254740991": {End: task.MaxRange}} {
		if got, ok := span(text); !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "5", "5-", "-5", "5-4", "05-6", "0-9007199254740992", "0--1", "1-2-3", "0 - 9", "٠-٩"} {
		if got, ok := span(text); ok {
			t.Errorf("%q: taken as %+v", text, got)
		}
	}
}

// --set gives variables, and a key may be made of them: one file for every month.
func TestSetReachesTheIdempotencyKey(t *testing.T) {
	data := []byte(hello + "env: {MONTH: none}\nidempotency_key: invoices-${MONTH}\n")
	spec, faults := Load("x", data, Options{Set: map[string]string{"env.MONTH": "2026-12"}})
	if spec == nil || spec.IdempotencyKey != "invoices-2026-12" {
		t.Errorf("got %+v, %v", spec, faults)
	}
}
