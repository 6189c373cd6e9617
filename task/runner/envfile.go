package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// readFile reads KEY=value lines: blank lines and those that begin with # are skipped, `export ` in front and one pair of quotes
// around the value are taken off, nothing is expanded. A byte-order mark and line ends of Windows do no harm.
func (v *vars) readFile(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("env file %q is not an absolute path", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("env file %s: %w", path, reason(err))
	}
	defer closeQuietly(f)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || !envName(name) {
			return fmt.Errorf("env file %s line %d is not KEY=value", path, n) // the line itself may be a secret
		}
		if strings.HasPrefix(varKey(name), "LANJOBS") {
			return fmt.Errorf("env file %s line %d: names that begin with LANJOBS are lanjobs' own", path, n)
		}
		v.set(name, unquote(strings.TrimSpace(value)))
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("env file %s: %w", path, reason(err))
	}
	return nil
}

func envName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	return s
}

// reason strips the path that *fs.PathError repeats.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
