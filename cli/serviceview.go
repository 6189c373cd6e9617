package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"lanjobs/cli/service"
	"lanjobs/task"
	"lanjobs/transport"
)

// ServiceView is what `service status` shows: the manager's word, and the node's if it answers.
type ServiceView struct {
	service.State
	Node *transport.ProcessView `json:"node,omitempty"`
	Name string                 `json:"node_name,omitempty"`
}

func (c *call) serviceView(ctx context.Context, st service.State) *ServiceView {
	v := &ServiceView{State: st}
	if st.DataDir == "" {
		return v
	}
	cl := c.clientOf(st.DataDir)
	node, status := &transport.ProcessView{}, &task.ClusterView{}
	if cl.try(ctx, request{method: "GET", path: "/v1/process"}, node) == nil {
		v.Node = node
	}
	if cl.try(ctx, request{method: "GET", path: "/v1/status"}, status) == nil {
		v.Name = status.SelfName
	}
	return v
}

// clientOf is a client to the node of a folder.
func (c *call) clientOf(dataDir string) *client {
	return &client{door: c.door(transport.SocketPath(dataDir)), clock: c.clock}
}

func serviceAnswer(v *ServiceView) answer {
	words := "not installed"
	switch {
	case v.Installed && v.Running:
		words = "installed, running"
	case v.Installed:
		words = "installed, not running"
	}
	a := answer{value: v, names: []string{service.Name}, head: []string{fmt.Sprintf("%s (%s)   %s", service.Name, v.Manager, words)}}
	add := func(name, value string) {
		if value != "" {
			a.head = append(a.head, fmt.Sprintf("  %-9s %s", name, oneLine(value)))
		}
	}
	if !v.Installed {
		a.foot = []string{"sudo lanjobs service install   or for you alone: lanjobs service install --user"}
		return a
	}
	add("unit", v.Unit)
	add("program", v.Exe)
	add("user", v.User)
	add("data", v.DataDir)
	if v.Node != nil {
		add("node", fmt.Sprintf("%s, lanjobs %s, process %d", v.Name, v.Node.Version, v.Node.PID))
		if !v.Node.Service {
			a.foot = append(a.foot, "The node on this folder was started by hand. Give it to the service: lanjobs service start")
		}
	}
	if !v.AtBoot {
		a.foot = append(a.foot, "It does not start with the machine. Mend that: lanjobs service install")
	}
	if !v.Ours {
		a.foot = append(a.foot, "Its unit was not written by lanjobs.")
	}
	return a
}

// serviceSilent says where to look when a service was started and its node does not answer.
func (c *call) serviceSilent(st service.State, err error) error {
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	hint := "Its log: " + filepath.Join(st.DataDir, logName)
	if st.Manager == "systemd" {
		hint = "Its log: journalctl -n 30 -u lanjobs"
		if c.ofUser(st) {
			hint = "Its log: journalctl --user -n 30 -u lanjobs"
		}
	}
	return &exitError{code: exitBad, detail: fmt.Sprintf("the service was started, but its node does not answer (%v).", err), hint: hint, cause: err}
}
