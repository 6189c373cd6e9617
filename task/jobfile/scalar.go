package jobfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"lanjobs/task"
)

// integer reads plain decimal digits. Everything else that some YAML reader takes for a number is refused: 010 is 8 to
// one and 10 to another, 1e3 and 1_000 are numbers to some and text to others.
func integer(s string) (int, bool) {
	if n := countDigits(s); n == 0 || n != len(s) || n > 9 || s[0] == '0' && n > 1 {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// decimal reads digits, and perhaps a point and more digits.
func decimal(s string) (float64, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if _, ok := integer(whole); !ok || point && (fraction == "" || countDigits(fraction) != len(fraction)) || len(s) > 20 {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// percent reads 20%, or 0.
func percent(s string) (int, bool) {
	if s == "0" {
		return 0, true
	}
	digits, ok := strings.CutSuffix(s, "%")
	if !ok {
		return 0, false
	}
	n, ok := integer(digits)
	return n, ok && n <= 100
}

// share reads 95%, a count, all or any.
func share(s string) (task.Success, bool) {
	switch s {
	case "all":
		return task.Success{Percent: 100}, true
	case "any":
		return task.Success{Count: 1}, true
	}
	if n, ok := integer(s); ok && n > 0 {
		return task.Success{Count: n}, true
	}
	n, ok := percent(s)
	return task.Success{Percent: n}, ok && n > 0
}

// suggestNumber guesses what a wrong number was meant to be.
func suggestNumber(s string) string {
	const how = "write it in plain decimal digits"
	text := strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	digits := strings.TrimLeft(text, "0")
	if n := countDigits(text); n == len(text) && n > 0 {
		if digits == "" {
			digits = "0"
		}
		if len(digits) > 9 {
			return "too large"
		}
		if len(digits) < len(text) {
			return fmt.Sprintf("write %s (a leading 0 means octal to some tools)", digits)
		}
		return "write " + digits
	}
	if n, err := strconv.ParseInt(text, 0, 32); err == nil && n > 0 {
		return fmt.Sprintf("write %d", n)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && f > 0 && f < 1e9 && f == float64(int(f)) {
		return fmt.Sprintf("write %d", int(f))
	}
	return how
}

// badText says what makes a text impossible to hand to a program or to store, "" if nothing does.
func badText(s string) string {
	switch {
	case strings.ContainsRune(s, 0):
		return "has a NUL character, which no program can be given"
	case !utf8.ValidString(s):
		return "is not UTF-8"
	}
	return ""
}

// hasControl tells whether a text has signs that would move a cursor or hide letters when shown. Line feeds and tabs count
// only if lines is false.
func hasControl(s string, lines bool) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		if lines && (r == '\n' || r == '\t') {
			return false
		}
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	})
}

// quote shows a text of the file inside a message: escaped, and not too long.
func quote(s string) string {
	const longest = 60
	if len(s) > longest {
		cut := longest
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strconv.Quote(s[:cut]) + "…"
	}
	return strconv.Quote(s)
}

// validName holds for names of jobs, stages and queues.
func validName(s string) bool {
	if s == "" || len(s) > task.MaxNameLength || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// suggestName makes a valid name of another text, or tells what one is.
func suggestName(s string) string {
	const how = "a name has only a-z, 0-9 and -, begins with a letter or digit, and is at most 63 long"
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(s)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case r < utf8.RuneSelf && r > ' ':
			b.WriteByte('-')
		case r == ' ':
			b.WriteByte('-')
		default:
			return how // a letter that has no plain form: any guess would be wrong
		}
	}
	name := strings.Trim(b.String(), "-")
	if !validName(name) {
		return how
	}
	return "write " + name
}

// validLabel holds for names of labels, on jobs and machines.
func validLabel(s string) bool {
	if s == "" || len(s) > task.MaxNameLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("-_./", rune(c))) {
			return false
		}
	}
	return true
}

// absolute tells whether a path is absolute on some system; the machine that runs it may be of another kind than this one.
func absolute(p string) bool {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) {
		return true
	}
	return len(p) > 2 && p[1] == ':' && (p[2] == '/' || p[2] == '\\') && unicode.IsLetter(rune(p[0]))
}
