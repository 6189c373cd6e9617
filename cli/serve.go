package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"lanjobs/cli/service"
	"lanjobs/node"
	"lanjobs/task"
)

func serveRow() *command {
	return &command{
		name: "serve", short: "be the node, in the foreground", takes: takesDataDir,
		long: `For service managers and containers; submit, init and join start it in the background by themselves. SIGTERM and Ctrl-C
stop it in order: work is given back, leadership handed over. It logs to standard error.`,
		flags: append([]urfave.Flag{
			&urfave.StringFlag{Name: "node-name", Usage: "call this machine `NAME` (its host name)"},
			&urfave.StringFlag{Name: "listen", Usage: "`ADDR[:PORT]` of the cluster port, once a member"},
			&urfave.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` of this machine; kept, \"\" takes all back"},
			&urfave.IntFlag{Name: "slots", Usage: "run `N` attempts at once (the number of processors)"},
			&urfave.Float64Flag{Name: "tempo", Usage: "multiply the time-outs of elections by `N`, for slow disks and Wi-Fi (1)"},
			&urfave.StringFlag{Name: "log-format", Usage: "`FORMAT` of the log: text, json"},
			&urfave.BoolFlag{Name: "debug", Usage: "log more"},
			&urfave.BoolFlag{Name: "service", Usage: "a service manager runs it", Hidden: true},
			&urfave.BoolFlag{Name: "noop-runner", Usage: "for benchmarks: attempts succeed without a process", Hidden: true},
		}, ruleFlags()...),
		run: func(ctx context.Context, c *call) error {
			listen, err := listenAddress(c.path, c.flags.String("listen"))
			if err != nil {
				return err
			}
			cfg, err := c.nodeConfig(serveFlags{listen: listen, name: c.flags.String("node-name"), labels: c.flags.StringSlice("label"), rules: c.rules()})
			if err != nil {
				return err
			}
			if n := c.flags.Int("slots"); n != 0 {
				cfg.Slots = n
			}
			if t := c.flags.Float64("tempo"); t != 0 {
				cfg.Tempo = t
			}
			cfg.NoopRunner = c.flags.Bool("noop-runner")
			if err := cfg.Validate(); err != nil {
				return usage(c.path, "%v", err)
			}
			cfg.Service = c.flags.Bool("service")
			if cfg.Service {
				return c.serveService(ctx, cfg)
			}
			return c.serve(ctx, cfg)
		},
	}
}

// nodeConfig is the default node with what the command line says of it.
func (c *call) nodeConfig(f serveFlags) (node.Config, error) {
	cfg := c.nodes.config()
	cfg.DataDir = c.dataDir()
	cfg.Version, cfg.Exe, cfg.Clock = c.version, c.exe, c.clock
	if f.listen != "" {
		cfg.Listen = f.listen
	}
	if f.name != "" {
		cfg.Name = f.name
	}
	cfg.Rules = f.rules
	for _, word := range f.labels {
		if word == "" { // takes back what is kept
			cfg.Labels = append([]task.KV{}, cfg.Labels...)
			continue
		}
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return cfg, usage(c.path, "--label %q: write KEY=VALUE.", word)
		}
		cfg.Labels = append(cfg.Labels, task.KV{Name: name, Value: value})
	}
	if err := cfg.Validate(); err != nil {
		return cfg, usage(c.path, "%v", err)
	}
	return cfg, nil
}

// gcPercent lets the heap grow to four times what is in use before it is cleaned: a node holds some MB, and cleaning at twice that
// takes a tenth of a busy node's processor time. GOGC in the environment overrides it.
const gcPercent = 300

// serve is the node until the context ends. Being told to stop is no failure.
func (c *call) serve(ctx context.Context, cfg node.Config) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	cfg.Log = log
	n, err := c.nodes.open(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.stopAtOnce(n)()
	err = n.Run(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted)) {
		return nil
	}
	return err
}

// serveService is serve for a service manager. A node that has left its cluster is not to be started again: its code says so.
func (c *call) serveService(ctx context.Context, cfg node.Config) error {
	if err := c.logToFile(cfg.DataDir); err != nil {
		return err
	}
	return service.Managed(ctx, func(ctx context.Context) error {
		err := c.serve(ctx, cfg)
		if _, exists := nodeHere(cfg.DataDir); err == nil && ctx.Err() == nil && !exists {
			return silently(service.ExitLeft)
		}
		return err
	})
}

// logToFile: a service of Windows has no standard error.
func (c *call) logToFile(dir string) error {
	if c.goos != "windows" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	c.stderr = f // until the process ends
	return nil
}

// stopAtOnce stops a node without ado at the second Ctrl-C, until the function that it gives is called.
func (c *call) stopAtOnce(n liveNode) (over func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-c.again:
			now, cancel := context.WithCancel(context.Background())
			cancel()
			_ = n.Stop(now)
		case <-end:
		}
	}()
	return func() { close(end); <-done }
}

// logger writes where a service manager reads.
func (c *call) logger() (*slog.Logger, error) {
	o := &slog.HandlerOptions{}
	if c.flags.Bool("debug") {
		o.Level = slog.LevelDebug
	}
	switch format := c.flags.String("log-format"); format {
	case "", "text":
		return slog.New(slog.NewTextHandler(c.stderr, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.stderr, o)), nil
	default:
		return nil, usage(c.path, "--log-format %q: text or json.", format)
	}
}
