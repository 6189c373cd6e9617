package runner

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"lanjobs/task"
)

// ownVars are the LANJOBS_ variables of UX 3.
func ownVars(r *record, p paths) []task.KV {
	a := &r.Assignment
	scheduled := ""
	if a.ScheduledFor != 0 {
		scheduled = time.UnixMilli(a.ScheduledFor).UTC().Format(time.RFC3339)
	}
	item := splitItem(r.Item)
	start, end := "", ""
	if a.Range != nil {
		start, end = strconv.FormatInt(a.Range.Start, 10), strconv.FormatInt(a.Range.End, 10)
	}
	out := []task.KV{
		{Name: "LANJOBS", Value: "1"},
		{Name: "LANJOBS_JOB_ID", Value: string(a.Job)},
		{Name: "LANJOBS_JOB_NAME", Value: r.JobName},
		{Name: "LANJOBS_STAGE", Value: r.Stage},
		{Name: "LANJOBS_SHARD", Value: strconv.Itoa(a.Shard)},
		{Name: "LANJOBS_SHARDS", Value: strconv.Itoa(r.Shards)},
		{Name: "LANJOBS_ITEM", Value: r.Item},
		{Name: "LANJOBS_ITEM_NAME", Value: item.name},
		{Name: "LANJOBS_ITEM_STEM", Value: item.stem},
		{Name: "LANJOBS_ITEM_DIR", Value: item.dir},
		{Name: "LANJOBS_RANGE_START", Value: start},
		{Name: "LANJOBS_RANGE_END", Value: end}, // exclusive
		{Name: "LANJOBS_ATTEMPT", Value: strconv.Itoa(a.Attempt)},
		{Name: "LANJOBS_EXECUTION_ID", Value: string(a.Execution())},
		{Name: "LANJOBS_FENCE", Value: strconv.FormatUint(uint64(a.Token), 10)},
		{Name: "LANJOBS_NODE", Value: r.Node},
		{Name: "LANJOBS_QUEUE", Value: r.Queue},
		{Name: "LANJOBS_SCHEDULED_FOR", Value: scheduled},
		{Name: markName, Value: p.dir},
		{Name: "LANJOBS_CHECKPOINT", Value: p.checkpoint},
		{Name: "LANJOBS_OUTPUT", Value: p.output},
		{Name: "LANJOBS_STOP", Value: p.stop},
	}
	if runtime.GOOS == "windows" {
		return append(out, task.KV{Name: "LANJOBS_URL", Value: r.URL}, task.KV{Name: "LANJOBS_TOKEN", Value: r.Secret})
	}
	return append(out, task.KV{Name: "LANJOBS_SOCKET", Value: p.socket})
}

// markName is the variable by which processes of an attempt are known: its private directory. An execution id alone would not do,
// since two nodes of different clusters on one machine may both have it.
const markName = "LANJOBS_DIR"

// markPrefix begins the mark of every attempt of a runner.
func markPrefix(dir string) string {
	return markName + "=" + filepath.Join(dir, "attempt") + string(filepath.Separator)
}

// itemParts is an item read as a path.
type itemParts struct{ dir, name, stem string }

func splitItem(item string) itemParts {
	if item == "" {
		return itemParts{}
	}
	dir, name := ".", item
	if i := strings.LastIndexFunc(item, func(r rune) bool { return r == '/' || r == '\\' && runtime.GOOS == "windows" }); i >= 0 {
		dir, name = item[:max(i, 1)], item[i+1:]
	}
	stem := name
	if i := strings.LastIndexByte(name, '.'); i > 0 { // a leading dot hides a file, it begins no extension
		stem = name[:i]
	}
	return itemParts{dir, name, stem}
}
