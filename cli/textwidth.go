package cli

import (
	"strings"
	"unicode"
)

// wide is how many columns of a terminal a text takes: Chinese, Japanese and Korean signs and most pictures take two, accents that
// combine and invisible signs none.
func wide(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && unicode.In(r, doubled):
		return 2
	}
	return 1
}

// doubled are the blocks that terminals draw two columns wide (East Asian Width W and F, by blocks).
var doubled = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x23e9, Hi: 0x23ec, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0x33ff, Stride: 1}, {Lo: 0x3400, Hi: 0x4dbf, Stride: 1}, {Lo: 0x4e00, Hi: 0x9fff, Stride: 1}, {Lo: 0xa000, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, {Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff01, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe0, Hi: 0x18d8f, Stride: 1}, {Lo: 0x1b000, Hi: 0x1b2ff, Stride: 1}, {Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// cutAt splits a text after so many columns at most.
func cutAt(text string, room int) (head, rest string) {
	n := 0
	for i, r := range text {
		if n += runeWidth(r); n > room {
			return text[:i], text[i:]
		}
	}
	return text, ""
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
