//go:build !linux && !darwin && !windows

package runner

// Battery tells whether this machine has a battery, and whether it runs on it now: not known here.
func Battery() (has, on bool) { return false, false }
