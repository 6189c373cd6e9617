package task

import (
	"strings"
	"unicode/utf8"
)

// Nearest gives the word that was probably meant: one edit away, two in words of five letters and more, whatever the case;
// "" if none is. Words longer than MaxNameLength are not compared: nobody mistypes them, and comparing costs their product.
func Nearest(words []string, word string) string {
	if len(word) > MaxNameLength {
		return ""
	}
	word = strings.ToLower(word)
	limit := 1
	if len(word) >= 5 {
		limit = 2
	}
	letters := utf8.RuneCountInString(word)
	best := ""
	for _, w := range words {
		if len(w) > MaxNameLength {
			continue
		}
		if d := EditDistance(strings.ToLower(w), word); d <= limit && d < letters && d < utf8.RuneCountInString(w) { // something of it must be left
			best, limit = w, d-1
		}
	}
	return best
}

// EditDistance counts the letters to add, drop, change or swap with their neighbour to make one word of the other (optimal
// string alignment: no letter is touched twice).
func EditDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, last, now := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		now[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(t)]
}
