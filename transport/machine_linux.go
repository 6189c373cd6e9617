package transport

import (
	"os"
	"strings"
)

// machineID is systemd's or D-Bus' id of this installation. Both are read, because a small system may have only the second.
func machineID() string {
	for _, name := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		b, err := os.ReadFile(name)
		// "uninitialized" stands there in an image before its first start.
		if id := strings.TrimSpace(string(b)); err == nil && id != "" && id != "uninitialized" {
			return id
		}
	}
	return ""
}
