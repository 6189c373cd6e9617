package jobfile

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"lanjobs/task"
)

// MaxLength bounds every length of time in a job file.
const MaxLength = 3650 * task.Day

var units = []struct {
	name string
	size task.Millis
}{{"d", task.Day}, {"h", task.Hour}, {"m", task.Minute}, {"s", task.Second}, {"ms", 1}}

// A ParseLength error carries what to write instead, if that can be guessed.
var (
	errNoLength = errors.New("is not a length of time")
	errTooLong  = errors.New("is too long")
)

// ParseLength reads a length of time: 250ms, 5s, 5m, 1h30m, 1d, or 0. Units go from large to small, each at most once.
// A number without a unit is refused: some tools read it as seconds, some as minutes.
func ParseLength(s string) (task.Millis, error) {
	if s == "0" {
		return 0, nil
	}
	if s == "" {
		return 0, errNoLength
	}
	var sum task.Millis
	next := 0 // units before this one have been used
	for rest := s; rest != ""; {
		digits := countDigits(rest)
		letters := strings.IndexFunc(rest[digits:], func(r rune) bool { return r >= '0' && r <= '9' })
		if letters < 0 {
			letters = len(rest) - digits
		}
		unit := unitIndex(rest[digits : digits+letters])
		if digits == 0 || unit < next {
			return 0, errNoLength
		}
		n, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil || n > int64(MaxLength/units[unit].size) {
			return 0, errTooLong
		}
		sum += task.Millis(n) * units[unit].size
		rest, next = rest[digits+letters:], unit+1
	}
	if sum > MaxLength {
		return 0, errTooLong
	}
	return sum, nil
}

func unitIndex(name string) int {
	for i, u := range units {
		if u.name == name {
			return i
		}
	}
	return -1
}

func countDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// FormatLength writes a length the way ParseLength reads it: 90m is 1h30m. A day is 24h, as people say; two are 2d.
func FormatLength(m task.Millis) string {
	if m == 0 {
		return "0"
	}
	var b strings.Builder
	if m < 0 {
		b.WriteByte('-')
		m = -m
	}
	for _, u := range units {
		if u.size == task.Day && m < 2*task.Day {
			continue
		}
		if n := m / u.size; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10))
			b.WriteString(u.name)
			m -= n * u.size
		}
	}
	return b.String()
}

// Spellings of the units that people write elsewhere.
var spellings = map[string]string{
	"ms": "ms", "msec": "ms", "msecs": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"d": "d", "day": "d", "days": "d", "w": "w", "wk": "w", "week": "w", "weeks": "w",
}

// SuggestLength guesses what a text was meant to be that ParseLength refused with err.
func SuggestLength(s string, err error) string { return suggestLength(s, err) }

// suggestLength guesses what a wrong length was meant to be.
func suggestLength(s string, err error) string {
	const how = "write it as 250ms, 5s, 5m, 1h30m or 1d"
	if errors.Is(err, errTooLong) {
		return "at most " + strconv.Itoa(int(MaxLength/task.Day)) + "d"
	}
	text := strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), " ", ""))
	if strings.HasPrefix(text, "-") {
		return "a length of time cannot be negative"
	}
	if n := countDigits(text); n > 0 && n == len(text) {
		return text + "s or " + text + "m?"
	}
	var b strings.Builder
	for text != "" {
		n := countDigits(text)
		whole, rest := text[:n], text[n:]
		fraction := ""
		if strings.HasPrefix(rest, ".") {
			f := countDigits(rest[1:])
			fraction, rest = rest[:f+1], rest[f+1:]
		}
		l := 0
		for l < len(rest) && rest[l] >= 'a' && rest[l] <= 'z' {
			l++
		}
		unit := spellings[rest[:l]]
		if unit == "" && l == 0 && strings.HasSuffix(b.String(), "h") {
			unit = "m" // 1h30
		}
		part := exactLength(whole, fraction, unit)
		if part == "" {
			return how
		}
		b.WriteString(part)
		text = rest[l:]
	}
	if _, err := ParseLength(b.String()); err != nil {
		return how
	}
	return "write " + b.String()
}

// exactLength writes one part with a proper unit, keeping the number as it was typed if that is possible.
func exactLength(whole, fraction, unit string) string {
	factor := 1
	if unit == "w" {
		factor, unit = 7, "d"
	}
	i := unitIndex(unit)
	if whole == "" || len(whole) > 12 || i < 0 {
		return ""
	}
	if fraction == "" && factor == 1 {
		return whole + unit
	}
	f, err := strconv.ParseFloat(whole+fraction, 64)
	if err != nil || f*float64(factor) > float64(MaxLength/units[i].size) {
		return ""
	}
	return FormatLength(task.Millis(math.Round(f * float64(factor) * float64(units[i].size))))
}
