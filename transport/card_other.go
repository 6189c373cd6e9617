//go:build !linux

package transport

import (
	"runtime"
	"strings"
)

// isCard tells whether an interface is hardware: on macOS by its name, elsewhere that is not known.
func isCard(name string) bool { return runtime.GOOS == "darwin" && strings.HasPrefix(name, "en") }
