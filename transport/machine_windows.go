package transport

import "golang.org/x/sys/windows/registry"

// machineID is made by Windows when it is installed.
func machineID() string {
	// The 64-bit view also for a 32-bit binary: the other one may hold another value.
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return ""
	}
	defer k.Close()
	id, _, err := k.GetStringValue("MachineGuid")
	if err != nil {
		return ""
	}
	return id
}
