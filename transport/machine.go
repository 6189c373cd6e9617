package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// machineEnv replaces the system's machine id: in containers, whose images share one, and in tests.
const machineEnv = "LANJOBS_MACHINE_ID"

// MachineFingerprint tells machines apart, so that a copied data folder is noticed; "" where the system has no id. It is a
// hash, since the id itself must not leave the machine (machine-id(5)), and says nothing of addresses or names (R2).
func MachineFingerprint() string {
	id := os.Getenv(machineEnv)
	if id == "" {
		id = strings.ToLower(strings.TrimSpace(machineID()))
	}
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("lanjobs machine\x00" + id))
	return hex.EncodeToString(sum[:16])
}
