package runner

import "os/exec"

// Battery tells whether this machine has a battery, and whether it runs on it now.
func Battery() (has, on bool) {
	out, err := exec.Command("/usr/bin/pmset", "-g", "batt").Output()
	if err != nil {
		return false, false
	}
	return parsePmset(string(out))
}
