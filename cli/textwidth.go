package cli

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// terminal measures text as terminals draw it, whatever this machine's language is: Chinese, Japanese and Korean signs and pictures
// take two columns, accents that combine and invisible signs none.
var terminal = runewidth.Condition{StrictEmojiNeutral: true}

// wide is how many columns of a terminal a text takes.
func wide(text string) int { return terminal.StringWidth(text) }

// cutAt splits a text after so many columns at most.
func cutAt(text string, room int) (head, rest string) {
	if wide(text) <= room {
		return text, ""
	}
	head = terminal.Truncate(text, room, "")
	return head, text[len(head):]
}

// folded breaks a text into lines of so many columns: between words, so that a command can be copied; where a word is too long, after a
// hyphen, slash or comma in it, else anywhere.
func folded(text string, room int) []string {
	var out []string
	for room = max(room, 2); wide(text) > room; {
		head, rest := cutAt(text, room)
		space, inside := strings.LastIndexByte(head, ' '), strings.LastIndexAny(head, "-/,")+1
		switch {
		case strings.HasPrefix(rest, " "):
		case space > 0:
			head, rest = text[:space], text[space:]
		case inside > len(head)/3:
			head, rest = text[:inside], text[inside:]
		}
		out, text = append(out, strings.TrimRight(head, " ")), strings.TrimLeft(rest, " ")
	}
	return append(out, text)
}
