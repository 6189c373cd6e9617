//go:build !linux && !darwin && !windows

package doctor

// FileSystem is not told by this system.
func FileSystem(string) string { return "" }
