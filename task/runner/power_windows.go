package runner

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var getSystemPowerStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetSystemPowerStatus")

// Battery tells whether this machine has a battery, and whether it runs on it now.
func Battery() (has, on bool) {
	var status struct {
		acLine, battery, percent, system byte
		lifeTime, fullLifeTime           uint32
	}
	const none, unknown = 128, 255
	if ok, _, _ := getSystemPowerStatus.Call(uintptr(unsafe.Pointer(&status))); ok == 0 {
		return false, false
	}
	has = status.battery&none == 0 && status.battery != unknown
	return has, has && status.acLine == 0
}
