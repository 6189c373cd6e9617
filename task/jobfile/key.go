package jobfile

import (
	"strings"
	"unicode"
)

// kind is the type of a key's value.
type kind uint8

const (
	kindText    kind = iota // one scalar, as written
	kindInt                 // plain decimal digits
	kindDecimal             // digits, and perhaps a point and more digits
	kindLength              // 250ms, 5s, 1h30m, 1d, or 0
	kindPercent             // 20%, or 0
	kindShare               // 95% or a count
	kindWord                // one of key.words
	kindBool                // true or false
	kindBig                 // plain decimal digits, up to 2^53
	kindSpan                // 0-999999, both ends included
	kindCPU                 // processors, in thousandths: 4, 0.5
	kindSize                // 512Mi, 8Gi, or 0
	kindTexts               // list of texts
	kindInts                // list of numbers
	kindPairs               // free names with texts
	kindMap                 // the keys of key.sub
	kindShards              // a number, or kindMap
	kindStages              // list of stages
	kindJobs                // names with stages
)

// where tells in which maps a key is known.
type where uint8

const (
	inTop   where = 1 << iota
	inStage       // an element of stages
	inJob         // a value of jobs
	inSub         // inside another key
	inWork  = inTop | inStage | inJob
)

// key is one row of the schema.
type key struct {
	name    string
	kind    kind
	in      where
	def     string   // what holds when it is not given, as help shows it
	doc     string   // one line for help
	like    string   // how to write it, shown when it is written wrongly
	words   []string // of kindWord
	also    []string // what others call it
	sub     []key
	unbuilt bool   // refused by name until it is built: a key must never be taken and ignored
	instead string // people write it here, but it has no place here: refused with this suggestion
	// meant gives the word for what is written elsewhere: Forbid is skip.
	meant map[string]string
}

// keysIn gives the keys of a kind of map.
func keysIn(w where) []key {
	var out []key
	for _, k := range schema {
		if k.in&w != 0 {
			out = append(out, k)
		}
	}
	return out
}

// find gives a key by its name.
func find(keys []key, name string) *key {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

// fold makes spellings of one word alike: Time-Out, time_out and timeout.
func fold(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '-' && r != '_' && r != ' ' {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
