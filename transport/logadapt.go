package transport

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// HCLog lets hashicorp/raft write to slog, quietly: what it calls information is for debugging here, and that a machine does
// not answer is everyday on a LAN of sleepers (`status` shows it), so those lines are too.
func HCLog(l *slog.Logger) hclog.Logger { return hcLogger{log: l} }

type hcLogger struct {
	log  *slog.Logger
	name string
	args []any
}

// everyday are the beginnings of raft's warnings and errors about machines that are away.
var everyday = []string{
	"failed to heartbeat to", "failed to appendEntries to", "failed to make requestVote RPC", "failed to contact",
	"failed to pipeline appendEntries", "failed to start pipeline", "failed to decode incoming command",
	"failed to flush response", "failed to send snapshot to", "failed to install snapshot", "failed to accept connection",
	"Election timeout reached", "rejecting vote request", "rejecting pre-vote request", "appendEntries rejected",
	"failed to get previous log", "previous log term mis-match", "not part of stable configuration", "no known peers",
}

func (h hcLogger) level(l hclog.Level, msg string) slog.Level {
	if l >= hclog.Warn {
		for _, e := range everyday {
			if strings.HasPrefix(msg, e) {
				return slog.LevelDebug
			}
		}
	}
	switch l {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Log writes one line.
func (h hcLogger) Log(l hclog.Level, msg string, args ...any) {
	level := h.level(l, msg)
	if !h.log.Enabled(context.Background(), level) {
		return // before anything is formatted
	}
	all := make([]any, 0, len(h.args)+len(args))
	all = append(append(all, h.args...), args...)
	for i, a := range all {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			all[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	h.log.Log(context.Background(), level, "raft: "+msg, all...)
}

func (h hcLogger) Trace(msg string, args ...any) { h.Log(hclog.Trace, msg, args...) }
func (h hcLogger) Debug(msg string, args ...any) { h.Log(hclog.Debug, msg, args...) }
func (h hcLogger) Info(msg string, args ...any)  { h.Log(hclog.Info, msg, args...) }
func (h hcLogger) Warn(msg string, args ...any)  { h.Log(hclog.Warn, msg, args...) }
func (h hcLogger) Error(msg string, args ...any) { h.Log(hclog.Error, msg, args...) }

func (h hcLogger) enabled(l hclog.Level) bool {
	return h.log.Enabled(context.Background(), h.level(l, ""))
}
func (h hcLogger) IsTrace() bool { return h.enabled(hclog.Trace) }
func (h hcLogger) IsDebug() bool { return h.enabled(hclog.Debug) }
func (h hcLogger) IsInfo() bool  { return h.enabled(hclog.Info) }
func (h hcLogger) IsWarn() bool  { return h.enabled(hclog.Warn) }
func (h hcLogger) IsError() bool { return h.enabled(hclog.Error) }

func (h hcLogger) ImpliedArgs() []any { return h.args }
func (h hcLogger) With(args ...any) hclog.Logger {
	h.args = append(append([]any(nil), h.args...), args...)
	return h
}
func (h hcLogger) Name() string { return h.name }
func (h hcLogger) Named(name string) hclog.Logger {
	h.name = name
	return h
}
func (h hcLogger) ResetNamed(name string) hclog.Logger { return h.Named(name) }
func (h hcLogger) SetLevel(hclog.Level)                {}
func (h hcLogger) GetLevel() hclog.Level               { return hclog.NoLevel }
func (h hcLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(h.StandardWriter(nil), "", 0)
}
func (h hcLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer {
	return lineWriter(h.stdLine)
}
func (h hcLogger) stdLine(line string) { h.Debug(line) }

// lineWriter takes the lines of a standard logger.
type lineWriter func(line string)

func (w lineWriter) Write(b []byte) (int, error) {
	w(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}

// gossipLogger lets memberlist write to slog. Its levels stand in the text; "failed" of a peer is a hint of gossip and no
// more, so nothing of it is above debug but errors of its own making, which become warnings. hook sees each line.
func gossipLogger(l *slog.Logger, hook func(line string)) *log.Logger {
	return log.New(lineWriter(func(line string) {
		hook(line)
		level := slog.LevelDebug
		if strings.HasPrefix(line, "[WARN]") && strings.Contains(line, "UDP probes failed") {
			level = slog.LevelWarn
		}
		if l.Enabled(context.Background(), level) {
			l.Log(context.Background(), level, "gossip", "line", line)
		}
	}), "", 0)
}
