//go:build !linux && !darwin && !windows

package runner

import "errors"

// SystemInhibitor is that of this system: none is known here.
func SystemInhibitor() Inhibitor { return noInhibitor{} }

type noInhibitor struct{}

func (n noInhibitor) Take() (*Hold, error) { return nil, n.Check() }
func (noInhibitor) Check() error           { return errors.New("lanjobs knows no way on this system") }
