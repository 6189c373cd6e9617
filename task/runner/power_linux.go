package runner

import (
	"os"
	"path/filepath"
	"strings"
)

// Battery tells whether this machine has a battery, and whether it runs on it now.
func Battery() (has, on bool) { return batteryUnder("/sys/class/power_supply") }

func batteryUnder(dir string) (has, on bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false
	}
	var all []supply
	for _, e := range entries {
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(dir, e.Name(), name)) // what is not there is ""
			return strings.TrimSpace(string(text))
		}
		all = append(all, supply{kind: read("type"), scope: read("scope"), online: read("online"), status: read("status")})
	}
	return fedBy(all)
}
