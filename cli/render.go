package cli

import (
	"fmt"
	"io"
	"strings"
)

// style is a colour of the 16-colour palette. It never carries meaning alone: a word or a sign stands beside it.
type style string

const (
	plain  style = ""
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
	grey   style = "90"
)

// screen is how text may look on one stream.
type screen struct {
	out    io.Writer
	colour bool
	utf8   bool
	width  int // 0 = as wide as it gets
	height int
}

// screenOf decides by the rules of NO_COLOR, CLICOLOR and CLICOLOR_FORCE.
func screenOf(w *world, out io.Writer, tty bool, color string) *screen {
	s := &screen{out: out, utf8: isUTF8(w)}
	if tty {
		s.width, s.height = w.size()
	}
	switch {
	case color == "always":
		s.colour = true
	case color == "never":
	case w.getenv("CLICOLOR_FORCE") != "" && w.getenv("CLICOLOR_FORCE") != "0":
		s.colour = true
	default:
		s.colour = tty && w.getenv("NO_COLOR") == "" && w.getenv("CLICOLOR") != "0" && w.getenv("TERM") != "dumb"
	}
	return s
}

// isUTF8 follows the locale's variables. Windows and macOS terminals speak UTF-8 without them.
func isUTF8(w *world) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(w.getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return w.goos == "windows" || w.goos == "darwin"
}

// paint puts text into a style.
func (s *screen) paint(st style, text string) string {
	if !s.colour || st == plain || text == "" {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// ascii spells the signs of a text for a terminal without UTF-8.
func (s *screen) text(t string) string {
	if s.utf8 {
		return t
	}
	return signs.Replace(t)
}

var signs = strings.NewReplacer("✓", "ok", "✕", "x", "█", "#", "░", ".", "→", "->", "…", "...", "·", "-", "–", "-", "×", "x", "≥", ">=", "≤", "<=", "“", `"`, "”", `"`)

// state is a cell with the colour of its word.
func state(word string) cell { return cell{word, stateStyle(word)} }

func stateStyle(word string) style {
	switch word {
	case "succeeded", "ready", "healthy", "partial", "active":
		return green
	case "failed", "silent", "no_leader", "dead", "expired", "invalid", "unstable", "bad":
		return red
	case "running", "assigned", "open":
		return cyan
	case "pending", "waiting", "backoff", "draining", "asleep", "degraded", "standby", "paused", "full":
		return yellow
	case "cancelled", "left", "skipped", "over":
		return grey
	}
	return plain
}

// clip cuts a text to so many columns.
func (s *screen) clip(text string, room int) string {
	if wide(text) <= room {
		return text
	}
	end := s.text("…")
	head, _ := cutAt(text, max(room-wide(end), 0))
	return head + end
}

// fit cuts a frame that is drawn in place to the rows of the terminal: what has scrolled away cannot be drawn over.
func (s *screen) fit(lines []string) []string {
	if s.height < 3 || len(lines) < s.height {
		return lines
	}
	keep := s.height - 2
	return append(lines[:keep:keep], s.text(fmt.Sprintf("… %d more lines", len(lines)-keep)))
}

// wrap breaks a text between words so that it fits, with so many blanks before its first line and the others.
func (s *screen) wrap(text string, first, others int) []string {
	var out []string
	line := strings.Repeat(" ", first)
	empty := true
	for _, word := range strings.SplitAfter(text, " ") {
		if !empty && s.width > 1 && wide(line)+wide(strings.TrimRight(word, " ")) >= s.width {
			out = append(out, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", others)
		}
		line += word
		empty = false
	}
	return append(out, s.clipped(line))
}

// overlong is a line above or below a table: on a terminal it goes on below if it is too long, so that a frame has the lines that
// are counted.
func (s *screen) overlong(line string) []string {
	if line = s.text(line); s.width <= 1 || wide(line) < s.width {
		return []string{line}
	}
	indent := wide(line) - wide(strings.TrimLeft(line, " "))
	return s.wrap(strings.TrimLeft(line, " "), indent, indent+2)
}

// clipped is a line cut to the terminal, if that is one.
func (s *screen) clipped(line string) string {
	if s.width > 1 {
		return s.clip(line, s.width-1)
	}
	return line
}

// oneLine keeps a text of a task or a person from breaking a table or steering the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

func (s *screen) print(lines ...string) error {
	for _, l := range lines {
		if _, err := fmt.Fprintln(s.out, l); err != nil {
			return err
		}
	}
	return nil
}

// bar is a progress bar of n cells.
func (s *screen) bar(done, total, n int) string {
	if total <= 0 {
		return strings.Repeat(" ", n)
	}
	full := done * n / total
	bar := strings.Repeat("█", full) + strings.Repeat("░", n-full)
	if !s.utf8 {
		return "[" + s.text(bar) + "]"
	}
	return bar
}
