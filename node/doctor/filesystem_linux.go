package doctor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FileSystem names the kind of file system that a folder is on, "" if the system does not tell. Of FUSE it names the program too.
func FileSystem(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return mountOf(string(text), dir)
}

// mountOf finds the last mount on the longest way to a folder: "… … … root point options … - type source options".
func mountOf(table, dir string) (system string) {
	longest := -1
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 1 {
			continue
		}
		point := unescape(left[4])
		if inside(dir, point) && len(point) >= longest {
			longest, system = len(point), right[0]
		}
	}
	return system
}

func inside(dir, point string) bool {
	return point == "/" || dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
}

// unescape undoes the octal signs of mountinfo: \040 is a blank.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
