package cli

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"lanjobs/node"
	"lanjobs/task"
)

func versionRow() *command {
	return &command{
		name: "version", short: "version of this program, and the level of the cluster here", takes: takesOutput | takesDataDir,
		run: func(ctx context.Context, c *call) error {
			v := versionView{Version: c.version, Level: node.Level, OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version()}
			text := "lanjobs " + c.version
			if c.opt.output == "wide" {
				text += "  " + v.OS + "/" + v.Arch + "  " + v.Go
			}
			return c.show(answer{value: &v, names: []string{c.version}, head: append([]string{text}, c.clusterLevel(ctx, &v)...)})
		},
	}
}

// versionView is what version prints for programs.
type versionView struct {
	Version string `json:"version"`
	Level   int    `json:"level"` // highest that this program knows
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Go      string `json:"go"`
	// Of the node here, if one runs.
	Node         string   `json:"node_version,omitempty"`
	Cluster      string   `json:"cluster,omitempty"`
	ClusterLevel int      `json:"cluster_level,omitempty"`
	HeldBackBy   []string `json:"held_back_by,omitempty"`
}

// levelTimeout is how long version waits for the node here: it answers without one, too.
const levelTimeout = 2 * time.Second

// clusterLevel asks the node here.
func (c *call) clusterLevel(ctx context.Context, v *versionView) (lines []string) {
	s := &task.ClusterView{}
	if c.client().try(ctx, request{method: "GET", path: "/v1/status", limit: levelTimeout}, s) != nil {
		return nil
	}
	v.Node, v.Cluster, v.ClusterLevel, v.HeldBackBy = s.Version, s.Name, s.Level, s.HeldBackBy
	if s.Version != c.version {
		lines = append(lines, fmt.Sprintf("the node here runs %s: start it again to have it run %s", s.Version, c.version))
	}
	if s.Name != "" && s.Level > 0 {
		lines = append(lines, fmt.Sprintf("%s works at level %d of %d", s.Name, s.Level, v.Level))
	}
	if s.LevelSentence != "" {
		lines = append(lines, s.LevelSentence)
	}
	return lines
}
