package cli

import "strings"

// nearest gives the word that was probably meant: a slip or two of the finger away, or the only one that begins so. "" if none.
func nearest(words []string, word string) string {
	word = strings.ToLower(word)
	limit := 1
	if len(word) >= 5 {
		limit = 2
	}
	best, begins := "", ""
	for _, w := range words {
		if len(word) >= 2 && strings.HasPrefix(w, word) {
			if begins != "" {
				begins = "?" // more than one: no guess
			} else {
				begins = w
			}
		}
		if d := slips(strings.ToLower(w), word); d <= limit {
			best, limit = w, d-1
		}
	}
	if best == "" && begins != "?" {
		return begins
	}
	return best
}

// slips counts the letters to add, drop, change or swap with their neighbour to make one word of the other.
func slips(a, b string) int {
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
