package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// System is this machine.
type System struct{}

var _ Host = System{}

// Run is Host.
func (System) Run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		line := text[strings.LastIndexByte(text, '\n')+1:]
		if line == "" {
			line = err.Error()
		}
		err = fmt.Errorf("%s %s: %s", name, strings.Join(args, " "), line)
	}
	return text, err
}

// ReadFile is Host.
func (System) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// WriteFile is Host.
func (System) WriteFile(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}

// Remove is Host.
func (System) Remove(name string) error { return os.Remove(name) }

// Exists is Host.
func (System) Exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Getenv is Host.
func (System) Getenv(name string) string { return os.Getenv(name) }

// UID is Host.
func (System) UID() int { return os.Getuid() }

// Home is Host.
func (System) Home() string {
	dir, _ := os.UserHomeDir()
	return dir
}
