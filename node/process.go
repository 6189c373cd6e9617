package node

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"lanjobs/node/api"
	"lanjobs/transport"
)

var _ api.Process = peers{}

// Process is what this node's process is, with the flags that another one needs to be the same node.
func (p peers) Process() transport.ProcessView {
	cfg := p.m.cfg
	v := transport.ProcessView{PID: os.Getpid(), Exe: cfg.Exe, Version: cfg.Version, DataDir: cfg.DataDir, Service: cfg.Service, Flags: []string{}}
	if abs, err := filepath.Abs(cfg.DataDir); err == nil {
		v.DataDir = abs
	}
	for _, kv := range cfg.Labels {
		v.Flags = append(v.Flags, "--label", kv.Name+"="+kv.Value)
	}
	if cfg.Slots != runtime.NumCPU() {
		v.Flags = append(v.Flags, "--slots", fmt.Sprint(cfg.Slots))
	}
	if cfg.Tempo != 1 && cfg.Tempo != 0 {
		v.Flags = append(v.Flags, "--tempo", fmt.Sprint(cfg.Tempo))
	}
	return v
}

// process is nil inside `lanjobs run`, which ends by itself.
func (m *machine) process() api.Process {
	if m.cfg.Embedded {
		return nil
	}
	return peers{m}
}

// Stop ends the node in order.
func (p peers) Stop() { p.m.after(answerFirst, p.m.stopped) }
