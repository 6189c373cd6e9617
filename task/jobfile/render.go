package jobfile

import (
	"fmt"
	"strings"
	"unicode"

	"lanjobs/task"
)

// Render writes faults for a person: file:line:column, the line, what is wrong in it, what to write.
func Render(name string, faults []task.Fault) string {
	var b strings.Builder
	for _, f := range faults {
		b.WriteString(name)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		fmt.Fprintf(&b, ": %s\n", f.Message)
		if f.Line > 0 && f.Excerpt != "" {
			fmt.Fprintf(&b, "%5d | %s\n", f.Line, visible(f.Excerpt))
			fmt.Fprintf(&b, "      | %s\n", underline(f))
		}
		if f.Suggestion != "" {
			fmt.Fprintf(&b, "        %s\n", f.Suggestion)
		}
	}
	if name == "-" {
		name = "standard input"
	}
	count := fmt.Sprintf("%d problems", len(faults))
	switch n := len(faults); {
	case n == 1:
		count = "1 problem"
	case n > 0 && faults[n-1].Message == andMore:
		count = fmt.Sprintf("More than %d problems", n-1)
	}
	fmt.Fprintf(&b, "%s in %s; nothing was submitted.\n", count, name)
	return b.String()
}

// visible shows a line of a file that nobody has vouched for: signs that would move the cursor, turn the writing
// direction or hide become one box each, so that the underline stays where it belongs.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsGraphic(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// underline marks the place below its line, with a tab below each tab and two signs below each letter of double width.
func underline(f task.Fault) string {
	var before, under strings.Builder
	column := 0
	for _, r := range visible(f.Excerpt) {
		column++
		if column >= f.Column+f.Width {
			break
		}
		switch {
		case column >= f.Column:
			under.WriteString(strings.Repeat("~", columns(r)))
		case r == '\t':
			before.WriteByte('\t')
		default:
			before.WriteString(strings.Repeat(" ", columns(r)))
		}
	}
	before.WriteString(strings.Repeat(" ", max(f.Column-1-column, 0))) // a place behind the end of its line
	return before.String() + "^" + strings.TrimPrefix(under.String(), "~")
}

// columns is how wide a terminal shows a letter.
func columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= 0x3000 && r <= 0x303F, r >= 0xFF01 && r <= 0xFF60, r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	return 1
}
