package cli

import (
	"context"
	"runtime"
)

func versionRow() *command {
	return &command{
		name: "version", short: "version of this program", takes: takesOutput,
		run: func(_ context.Context, c *call) error {
			v := map[string]string{"version": c.version, "os": runtime.GOOS, "arch": runtime.GOARCH, "go": runtime.Version()}
			text := "lanjobs " + c.version
			if c.opt.output == "wide" {
				text += "  " + v["os"] + "/" + v["arch"] + "  " + v["go"]
			}
			return c.show(answer{value: v, names: []string{c.version}, head: []string{text}})
		},
	}
}
