package observe

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"lanjobs/task"
)

// appendLine writes one event as a line: its JSON, byte for byte as encoding/json makes it, and last the leader's wall clock
// as a person reads it. Written by hand, since a busy cluster makes tens of thousands of events a second and encoding/json
// takes ten times as long; a test compares the two field by field.
func (t *stamp) appendLine(b []byte, e *task.Event) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendUint(b, e.Index, 10)
	b = appendInt(b, `,"n":`, int64(e.N))
	b = appendInt(b, `,"clock":`, int64(e.Clock))
	b = optInt(b, `,"wall":`, e.Wall)
	b = appendText(b, `,"event":`, string(e.Kind))
	b = optText(b, `,"job":`, string(e.Job))
	b = optText(b, `,"job_name":`, e.JobName)
	b = optText(b, `,"stage":`, e.Stage)
	b = optText(b, `,"shards":`, e.Shards)
	b = optInt(b, `,"attempt":`, int64(e.Attempt))
	b = optText(b, `,"execution":`, string(e.Execution))
	b = optUint(b, `,"token":`, uint64(e.Token))
	b = optUint(b, `,"last_token":`, uint64(e.LastToken))
	b = optText(b, `,"node":`, string(e.Node))
	b = optText(b, `,"node_name":`, e.NodeName)
	b = optInt(b, `,"ttl_ms":`, int64(e.TTL))
	b = optInt(b, `,"expiry":`, int64(e.Expiry))
	b = optInt(b, `,"last_renewal":`, int64(e.LastRenewal))
	b = optLoad(b, e.Load)
	b = optUint(b, `,"checkpoint":`, e.Seq)
	b = optInt(b, `,"bytes":`, int64(e.Bytes))
	b = optText(b, `,"from":`, e.From)
	b = optText(b, `,"to":`, e.To)
	b = optText(b, `,"reason":`, e.Reason)
	b = optText(b, `,"by":`, e.By)
	if e.Wall != 0 {
		b = append(b, `,"time":"`...)
		b = append(b, t.of(e.Wall)...)
		b = append(b, '"')
	}
	return append(b, '}', '\n')
}

// stamp is the last wall clock that was written: the events of an entry share it.
type stamp struct {
	wall int64
	text []byte
}

func (t *stamp) of(wall int64) []byte {
	if t.wall != wall || t.text == nil {
		t.wall, t.text = wall, time.UnixMilli(wall).UTC().AppendFormat(t.text[:0], "2006-01-02T15:04:05.000Z")
	}
	return t.text
}

func appendInt(b []byte, name string, v int64) []byte {
	return strconv.AppendInt(append(b, name...), v, 10)
}

func optInt(b []byte, name string, v int64) []byte {
	if v == 0 {
		return b
	}
	return appendInt(b, name, v)
}

func optUint(b []byte, name string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(append(b, name...), v, 10)
}

func optText(b []byte, name, v string) []byte {
	if v == "" {
		return b
	}
	return appendText(b, name, v)
}

// appendText writes a text; what would need care in JSON or HTML is left to encoding/json.
func appendText(b []byte, name, v string) []byte {
	b = append(b, name...)
	for i := range len(v) {
		if c := v[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(v) // a string always has JSON
			return append(b, text...)
		}
	}
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"')
}

// optLoad writes a load; one that is no number has no word in JSON and is left out.
func optLoad(b []byte, l *task.Load) []byte {
	if l == nil || math.IsNaN(l.CPU) || math.IsInf(l.CPU, 0) {
		return b
	}
	b = append(b, `,"load":{"cpu":`...)
	if a := math.Abs(l.CPU); a == 0 || a >= 1e-6 && a < 1e21 {
		b = strconv.AppendFloat(b, l.CPU, 'f', -1, 64)
	} else {
		text, _ := json.Marshal(l.CPU) // finite
		b = append(b, text...)
	}
	b = appendInt(b, `,"mem_free_mb":`, int64(l.MemFreeMB))
	b = appendInt(b, `,"disk_free_mb":`, int64(l.DiskFreeMB))
	return append(b, '}')
}
