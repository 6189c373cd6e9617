package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// scm is the service control manager of Windows.
type scm struct{}

func newSCM() Manager { return scm{} }

// Check is Manager.
func (scm) Check(context.Context) error { return nil } // it runs on every Windows

// How long the manager may take to stop a node: it gives its work back.
const (
	scmPatience = 95 * time.Second
	scmPoll     = 200 * time.Millisecond
)

func commandLine(spec Spec) string {
	words := []string{windows.EscapeArg(spec.Exe)}
	for _, a := range spec.Args {
		words = append(words, windows.EscapeArg(a))
	}
	return strings.Join(words, " ")
}

// Unit is Manager.
func (scm) Unit(spec Spec) (place, text string) {
	return Name, fmt.Sprintf("service:  %s (%s)\nprogram:  %s\naccount:  %s\nstart:    automatic\nfailure:  restart after 2 s\n",
		Name, Mark, commandLine(spec), cmp.Or(spec.User, "LocalSystem"))
}

// opened gives f the service, if there is one.
func opened(f func(*mgr.Service) error) (there bool, err error) {
	m, err := mgr.Connect()
	if err != nil {
		return false, err
	}
	defer m.Disconnect()
	s, err := m.OpenService(Name)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer s.Close()
	return true, f(s)
}

// Install is Manager.
func (c scm) Install(ctx context.Context, spec Spec) error {
	if err := c.Uninstall(ctx); err != nil {
		return err
	}
	m, err := mgr.Connect()
	if err != nil {
		return err
	}
	defer m.Disconnect()
	s, err := m.CreateService(Name, spec.Exe, mgr.Config{DisplayName: "lanjobs node", Description: Mark, StartType: mgr.StartAutomatic,
		ServiceStartName: spec.User, Password: spec.Password}, spec.Args...)
	if err != nil {
		return err
	}
	defer s.Close()
	again := mgr.RecoveryAction{Type: mgr.ServiceRestart, Delay: 2 * time.Second}
	if err := s.SetRecoveryActions([]mgr.RecoveryAction{again, again, again}, 3600); err != nil {
		return err
	}
	if err := s.SetRecoveryActionsOnNonCrashFailures(true); err != nil {
		return err
	}
	return s.Start()
}

// Uninstall is Manager.
func (c scm) Uninstall(ctx context.Context) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	_, err := opened((*mgr.Service).Delete)
	return err
}

// Start is Manager.
func (scm) Start(context.Context) error {
	there, err := opened(func(s *mgr.Service) error {
		if err := s.Start(); !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
			return err
		}
		return nil
	})
	if err == nil && !there {
		return windows.ERROR_SERVICE_DOES_NOT_EXIST
	}
	return err
}

// Stop is Manager.
func (scm) Stop(ctx context.Context) error {
	_, err := opened(func(s *mgr.Service) error { return end(ctx, s) })
	return err
}

// end stops the service and waits until it has.
func end(ctx context.Context, s *mgr.Service) error {
	if _, err := s.Control(svc.Stop); err != nil && !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, scmPatience)
	defer cancel()
	for {
		st, err := s.Query()
		if err != nil || st.State == svc.Stopped {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service does not stop: %w", ctx.Err())
		case <-time.After(scmPoll):
		}
	}
}

// State is Manager. Unlike the rest it needs no administrator.
func (scm) State(context.Context) (State, error) {
	st := State{Manager: "windows", Unit: Name}
	h, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return st, err
	}
	defer windows.CloseServiceHandle(h)
	name, err := windows.UTF16PtrFromString(Name)
	if err != nil {
		return st, err
	}
	one, err := windows.OpenService(h, name, windows.SERVICE_QUERY_CONFIG|windows.SERVICE_QUERY_STATUS)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	s := &mgr.Service{Name: Name, Handle: one}
	defer s.Close()
	cfg, err := s.Config()
	if err != nil {
		return st, err
	}
	st.Installed, st.Ours, st.AtBoot, st.User = true, strings.HasPrefix(cfg.Description, Mark), cfg.StartType == mgr.StartAutomatic, cfg.ServiceStartName
	if words, err := windows.DecomposeCommandLine(cfg.BinaryPathName); err == nil {
		st.Exe, st.DataDir = fromCommand(words)
	}
	now, err := s.Query()
	st.Running, st.PID = now.State == svc.Running || now.State == svc.StartPending, int(now.ProcessId)
	return st, err
}

// Managed runs a node until its context ends. Started by the service control manager it answers that: a stop, and the shutdown of
// the machine, end the context, so that work is given back in order. An error of run is a failure after which the manager starts the
// service again.
func Managed(ctx context.Context, run func(context.Context) error) error {
	if is, err := svc.IsWindowsService(); err != nil || !is {
		return run(ctx)
	}
	h := &handler{ctx: ctx, run: run}
	if err := svc.Run(Name, h); err != nil {
		return err
	}
	return h.err
}

type handler struct {
	ctx context.Context
	run func(context.Context) error
	err error
}

// failed is what the manager is told of a run that ended with an error.
const failed = 1

// Execute is svc.Handler.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (specific bool, code uint32) {
	const takes = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown
	status <- svc.Status{State: svc.StartPending}
	ctx, stop := context.WithCancel(h.ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- h.run(ctx) }()
	status <- svc.Status{State: svc.Running, Accepts: takes}
	for {
		select {
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown, svc.PreShutdown:
				status <- svc.Status{State: svc.StopPending, WaitHint: uint32(scmPatience.Milliseconds())}
				stop()
			}
		case h.err = <-ended:
			if h.err != nil && ctx.Err() == nil {
				return true, failed
			}
			h.err = nil
			return false, 0
		}
	}
}
