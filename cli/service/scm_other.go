//go:build !windows

package service

import "context"

// newSCM is asked for on Windows only.
func newSCM() Manager { return nil }

// Managed runs a node until its context ends. Started by the service control manager of Windows, it speaks to that; elsewhere a
// service is a process like any other.
func Managed(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
