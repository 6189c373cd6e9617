package jobfile

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lanjobs/task"
)

// bigInteger reads plain decimal digits up to task.MaxRange.
func bigInteger(s string) (int64, bool) {
	if n := countDigits(s); n == 0 || n != len(s) || n > 16 || s[0] == '0' && n > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= task.MaxRange
}

// span reads 0-999999, both ends included, as people count; a RangeSpec ends before its End.
func span(s string) (task.RangeSpec, bool) {
	first, last, _ := strings.Cut(s, "-")
	a, ok := bigInteger(first)
	b, ok2 := bigInteger(last)
	return task.RangeSpec{Start: a, End: b + 1}, ok && ok2 && a <= b && b < task.MaxRange
}

func suggestSpan(s string) string {
	const how = "as in range: 0-999999, from a number to one that is not smaller; both are included"
	for _, sep := range []string{"..=", "...", "..", " to ", "–", ",", ":", "-"} {
		first, last, ok := strings.Cut(s, sep)
		if !ok {
			continue
		}
		first, last = strings.TrimSpace(first), strings.TrimSpace(last)
		for _, text := range []string{first + "-" + last, last + "-" + first} {
			if _, ok := span(text); ok {
				return "write " + text
			}
		}
	}
	if n, ok := bigInteger(s); ok && n > 0 {
		return fmt.Sprintf("write 0-%d for that many numbers", n-1)
	}
	return how
}

// milliCPU reads processors, in steps of a thousandth: 4, 0.5.
func milliCPU(s string) (int, bool) {
	f, ok := decimal(s)
	if !ok {
		return 0, false
	}
	_, fraction, _ := strings.Cut(s, ".")
	m := math.Round(f * 1000)
	return int(m), len(fraction) <= 3 && m >= 1 && m <= task.MaxMilliCPU
}

func suggestCPU(s string) string {
	if n, ok := integer(strings.TrimSuffix(s, "m")); ok && strings.HasSuffix(s, "m") && n > 0 {
		return "write " + strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	}
	if p, ok := percent(s); ok && p > 0 {
		return "write " + strconv.FormatFloat(float64(p)/100, 'f', -1, 64) + " for so much of one processor"
	}
	if f, ok := decimal(s); ok && f < 0.001 {
		return "at least 0.001: an attempt that only waits needs next to nothing, but is one"
	}
	return fmt.Sprintf("write 4, or 0.5 for half of one; from 0.001 to %d", task.MaxMilliCPU/1000)
}

var sizes = []struct {
	name string
	mega int64
}{{"Mi", 1}, {"Gi", 1 << 10}, {"Ti", 1 << 20}}

// megabytes reads a size in MiB: 512Mi, 1.5Gi, 1Ti, or 0. A number without a unit is refused: some tools read it as bytes,
// some as megabytes.
func megabytes(s string) (int, bool) {
	if s == "0" {
		return 0, true
	}
	for _, u := range sizes {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		f, ok := decimal(digits)
		f = math.Ceil(f * float64(u.mega))
		return int(min(f, task.MaxResourceMB)), ok && f <= task.MaxResourceMB
	}
	return 0, false
}

func suggestSize(s string) string {
	const how = "write 512Mi, 4Gi, 1Ti, or 0"
	text := strings.ToLower(strings.ReplaceAll(s, " ", ""))
	if n := countDigits(text); n > 0 && n == len(text) {
		return text + "Mi or " + text + "Gi?"
	}
	for _, u := range sizes {
		letter := strings.ToLower(u.name[:1])
		for _, end := range []string{letter + "ib", letter + "b", letter + "i", letter} {
			if digits, ok := strings.CutSuffix(text, end); ok {
				if _, ok := megabytes(digits + u.name); ok {
					return "write " + digits + u.name
				}
			}
		}
	}
	return how
}

func suggestBool(s string) string {
	switch fold(s) {
	case "true", "yes", "on", "1", "y":
		return "write true"
	case "false", "no", "off", "0", "n":
		return "write false"
	}
	return "write true or false"
}

func suggestShare(s string) string {
	if text := strings.ToLower(strings.ReplaceAll(s, " ", "")); text != s {
		if _, ok := share(text); ok {
			return "write " + text
		}
	}
	return "write 95%, from 1% to 100%, or how many shards must succeed; all and any are known too"
}
