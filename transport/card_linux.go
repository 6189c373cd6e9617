package transport

import "os"

// isCard tells whether the kernel has a device behind an interface.
func isCard(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name + "/device")
	return err == nil
}
