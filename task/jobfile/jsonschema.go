package jobfile

import "encoding/json"

// JSONSchema is the format for editors: JSON Schema 2020-12, made of the table that the parser uses. It knows names, types and
// words; what hangs together is for the parser.
func JSONSchema() []byte {
	top := object(keysIn(inTop))
	top["patternProperties"] = map[string]any{"^x-": true}
	top["required"] = []string{"name"}
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", "lanjobs job file"
	top["$defs"] = map[string]any{"stage": object(keysIn(inStage)), "job": object(keysIn(inJob))}
	out, err := json.MarshalIndent(top, "", " ")
	if err != nil {
		panic(err) // it holds texts and maps
	}
	return append(out, '\n')
}

// object is a map of known keys.
func object(keys []key) map[string]any {
	props := map[string]any{}
	for _, k := range keys {
		if k.instead != "" || k.unbuilt {
			continue
		}
		v := k.typed()
		v["description"] = k.doc
		if k.def != "" {
			v["description"] = k.doc + " (default " + k.def + ")"
		}
		props[k.name] = v
	}
	return map[string]any{"type": orNothing("object"), "properties": props, "additionalProperties": false}
}

// orNothing is a type of which a key without a value is an empty one.
func orNothing(t string) []string { return []string{t, "null"} }

// scalar is any value that is taken as it is written.
var scalar = []string{"string", "number", "boolean", "null"}

const lengthPattern = `^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+)$`

// typed is what a key's value may be.
func (k key) typed() map[string]any {
	switch k.kind {
	case kindInt, kindBig:
		return map[string]any{"type": "integer", "minimum": 0}
	case kindDecimal, kindCPU:
		return map[string]any{"type": "number", "minimum": 0}
	case kindLength:
		return map[string]any{"anyOf": []any{map[string]any{"type": "string", "pattern": lengthPattern}, map[string]any{"const": 0}}}
	case kindPercent, kindShare, kindSize, kindSpan:
		return map[string]any{"type": []string{"string", "integer"}}
	case kindWord:
		if len(k.words) == 1 {
			return map[string]any{"enum": []any{k.words[0], 1}} // version: 1
		}
		return map[string]any{"enum": k.words}
	case kindBool:
		return map[string]any{"type": "boolean"}
	case kindTexts:
		return map[string]any{"type": orNothing("array"), "items": map[string]any{"type": scalar}}
	case kindInts:
		return map[string]any{"type": orNothing("array"), "items": map[string]any{"type": "integer"}}
	case kindPairs:
		return map[string]any{"type": orNothing("object"), "additionalProperties": map[string]any{"type": scalar}}
	case kindMap:
		return object(k.sub)
	case kindShards:
		return map[string]any{"anyOf": []any{map[string]any{"type": "integer", "minimum": 1}, object(k.sub)}}
	case kindStages:
		return map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/stage"}}
	case kindJobs:
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"$ref": "#/$defs/job"}}
	}
	return map[string]any{"type": scalar}
}
