package jobfile

import (
	"fmt"
	"strconv"

	yaml "go.yaml.in/yaml/v4"
)

// value types one value; nil after a fault.
func (l *loader) value(s *scope, k *key, n *yaml.Node, field string) any {
	path := join(s.path, field)
	v := deref(n)
	switch k.kind {
	case kindStages:
		return l.stages(v, n, k)
	case kindJobs:
		return l.jobs(v, n, k)
	case kindPairs:
		return l.pairs(s, k, n, field)
	case kindTexts, kindInts:
		return l.list(s, k, n, field)
	case kindMap:
		if v.Kind == yaml.MappingNode {
			l.walk(s, k.sub, v, field)
		} else if !empty(v) {
			l.mistyped(n, path, field+" takes a map of keys", k)
		}
		return nil
	case kindShards:
		switch {
		case v.Kind == yaml.MappingNode:
			l.shards(s, k, n, v)
			return nil
		case v.Kind == yaml.SequenceNode:
			l.faultAt(n, path, "shards is a number, or a map that says which kind of list this is", "write shards: {items: […]}")
			return nil
		}
	}
	if v.Kind != yaml.ScalarNode {
		hint := like(k)
		if k.name == "run" && v.Kind == yaml.SequenceNode {
			hint = "a list of arguments is command: […]; a script is one text, after |"
		} else if v.Style&yaml.FlowStyle != 0 && k.kind == kindText {
			hint = "put the text in quotes if these signs are meant"
		}
		l.faultAt(n, path, field+" takes one value, not a list or map", hint)
		return nil
	}
	if k.kind == kindText {
		return l.text(n, v, path, field)
	}
	if empty(v) {
		l.mistyped(n, path, field+" has no value", k)
		return nil
	}
	return l.scalar(k, n, v.Value, path, field)
}

// scalar types a number, length, share or word.
func (l *loader) scalar(k *key, n *yaml.Node, s, path, field string) any {
	say := func(what, suggestion string) any {
		l.faultAt(n, path, fmt.Sprintf("%s %s %s", field, quote(s), what), suggestion)
		return nil
	}
	switch k.kind {
	case kindInt, kindShards:
		if v, ok := integer(s); ok {
			return v
		}
		return say("is not a whole number", suggestNumber(s))
	case kindDecimal:
		if v, ok := decimal(s); ok {
			return v
		}
		return say("is not a number", suggestNumber(s))
	case kindLength:
		v, err := ParseLength(s)
		if err == nil {
			return v
		}
		return say(err.Error(), suggestLength(s, err))
	case kindBool:
		switch s {
		case "true":
			return true
		case "false":
			return false
		}
		return say("is neither true nor false", suggestBool(s))
	case kindBig:
		if v, ok := bigInteger(s); ok {
			return v
		}
		return say("is not a whole number up to 2^53", suggestNumber(s))
	case kindSpan:
		if v, ok := span(s); ok {
			return v
		}
		return say("is not a range of whole numbers", suggestSpan(s))
	case kindCPU:
		if v, ok := milliCPU(s); ok {
			return v
		}
		return say("is not a number of processors", suggestCPU(s))
	case kindSize:
		if v, ok := megabytes(s); ok {
			return v
		}
		return say("is not a size", suggestSize(s))
	case kindPercent:
		if v, ok := percent(s); ok {
			return v
		}
		if v, ok := integer(s); ok && v <= 100 {
			return say("is not a percentage", "write "+strconv.Itoa(v)+"%")
		}
		return say("is not a percentage", "from 0 to 100%, without a fraction")
	case kindShare:
		if v, ok := share(s); ok {
			return v
		}
		return say("is neither a percentage nor a count", suggestShare(s))
	case kindWord:
		for _, w := range k.words {
			if w == s {
				return s
			}
		}
		if k.name == "version" {
			return say("is not known here", "this lanjobs reads version 1; a newer one needs a newer lanjobs")
		}
		if w := k.meant[fold(s)]; w != "" {
			return say("is not known", fmt.Sprintf("here it is called %q", w))
		}
		return say("is not known", didYouMean(k.words, s))
	}
	return nil
}

// text takes a scalar as written. A bare null is refused where it would become a value by accident: two jobs with
// "idempotency_key: null" are not meant to be one.
func (l *loader) text(n, v *yaml.Node, path, field string) any {
	if isNull(v) && v.Value != "" {
		l.faultAt(n, path, fmt.Sprintf("%s is %s", field, v.Value), `leave the line out, or put the word in quotes if it is meant`)
		return nil
	}
	if bad := badText(v.Value); bad != "" {
		l.faultAt(n, path, field+" "+bad, "")
		return nil
	}
	return v.Value
}

// empty tells whether nothing was written.
func empty(v *yaml.Node) bool { return isNull(v) && v.Value == "" }

func like(k *key) string {
	if k.like == "" {
		return ""
	}
	return "write " + k.like
}

func (l *loader) mistyped(n *yaml.Node, path, message string, k *key) {
	l.faultAt(n, path, message, like(k))
}
