package transport

import (
	"os/exec"
	"regexp"
)

var platformUUID = regexp.MustCompile(`"IOPlatformUUID" = "([0-9A-Fa-f-]+)"`)

// machineID is the hardware's UUID. Without cgo the I/O registry is only to be had through its tool.
func machineID() string {
	out, err := exec.Command("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice").Output()
	if err != nil {
		return ""
	}
	m := platformUUID.FindSubmatch(out)
	if m == nil {
		return ""
	}
	return string(m[1])
}
