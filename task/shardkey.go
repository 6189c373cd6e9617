package task

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// ShardKeyVars are the variables that a shard_key may use, by the names under which a task sees them too. All of them are known
// when a stage opens, and are the same for every attempt.
var ShardKeyVars = []string{"LANJOBS_JOB_NAME", "LANJOBS_STAGE", "LANJOBS_SHARD", "LANJOBS_ITEM", "LANJOBS_SCHEDULED_FOR"}

// ShardKeyUses lists what stands between ${ and } in a shard_key, known or not, in order.
func ShardKeyUses(template string) []string {
	var out []string
	ExpandVars(template, func(name string) (string, bool) {
		out = append(out, name)
		return "", true
	})
	return out
}

// ExpandShardKey is the key of one shard (R31): ${NAME} of each of ShardKeyVars replaced by what value gives for it. What was put
// in is not looked at again, so an item is never taken for a variable. A key of more than MaxShardKey bytes keeps its
// beginning, and gets a hash of the whole instead of its end.
func ExpandShardKey(template string, value func(name string) string) string {
	key := ExpandVars(template, func(name string) (string, bool) {
		if !slices.Contains(ShardKeyVars, name) {
			return "", false
		}
		return value(name), true
	})
	if len(key) <= MaxShardKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	cut := MaxShardKey - 1 - 2*len(sum)
	for cut > 0 && !utf8.RuneStart(key[cut]) {
		cut--
	}
	return key[:cut] + "#" + hex.EncodeToString(sum[:])
}

// ExpandVars replaces ${NAME} where value knows NAME; everything else stays byte for byte, and what was put in is not looked at
// again.
func ExpandVars(s string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !found || !closed {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		if v, ok := value(name); ok {
			b.WriteString(v)
			s = after
		} else {
			b.WriteString("${")
			s = rest
		}
	}
}
