package observe

import (
	"context"
	"log/slog"

	"lanjobs/task"
)

// news are the events that an operator would tell a colleague of.
var news = map[task.EventKind]bool{
	task.EventClusterInit: true, task.EventLeaderElected: true,
	task.EventNodeJoin: true, task.EventNodeOffline: true, task.EventNodeOnline: true, task.EventNodeDrain: true,
	task.EventNodeResume: true, task.EventNodeLeave: true, task.EventNodeRemove: true,
	task.EventTokenCreate: true, task.EventTokenUse: true, task.EventTokenRemove: true,
	task.EventJobSubmit: true, task.EventJobState: true, task.EventJobCancel: true, task.EventJobRetry: true,
	task.EventLeaseExpire: true, task.EventLeaseRefuse: true, task.EventShardState: true,
	EventGap: true,
}

// routine tells whether an event is a job taking its usual way: a busy cluster has thousands of them a second, and each member
// would write them. They are in the audit log and in `lanjobs events`.
func routine(e *task.Event) bool {
	return e.Kind == task.EventJobSubmit || e.Kind == task.EventJobState && (e.To == string(task.JobRunning) || e.To == string(task.JobSucceeded))
}

// say writes an event's one line to the log. The message is the event's kind; facts that are not there are left out.
func say(log *slog.Logger, e *task.Event) {
	level := slog.LevelDebug
	if news[e.Kind] && !routine(e) {
		level = slog.LevelInfo
	}
	ctx := context.Background()
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	count := func(name string, value uint64) {
		if value != 0 {
			attrs = append(attrs, slog.Uint64(name, value))
		}
	}
	count("index", e.Index)
	text("job", string(e.Job))
	text("job_name", e.JobName)
	text("stage", e.Stage)
	text("shard", e.Shards)
	count("attempt", uint64(max(e.Attempt, 0)))
	count("token", uint64(e.Token))
	text("node", e.NodeName)
	text("node_id", string(e.Node))
	count("checkpoint", e.Seq)
	text("from", e.From)
	text("to", e.To)
	text("reason", e.Reason)
	text("by", e.By)
	log.LogAttrs(ctx, level, string(e.Kind), attrs...)
}
