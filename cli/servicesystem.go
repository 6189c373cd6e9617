package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"lanjobs/cli/service"
)

// systemServices leads to the service managers of this machine.
func systemServices() servicing {
	return servicing{
		manager:  func(user bool) (service.Manager, error) { return service.New(service.System{}, runtime.GOOS, user) },
		root:     privileged,
		programs: programFolder,
		account:  findAccount,
	}
}

// programFolder is where programs stay that are not of the system's own packages.
func programFolder(user bool, home string) string {
	switch {
	case runtime.GOOS == "windows":
		return filepath.Join(os.Getenv("ProgramFiles"), "lanjobs")
	case user:
		return filepath.Join(home, ".local", "bin")
	}
	return "/usr/local/bin"
}

func findAccount(name string) (*account, error) {
	u, err := user.Current()
	if name != "" {
		u, err = user.Lookup(name)
	}
	if err != nil {
		return nil, err
	}
	a := &account{Name: u.Username, Home: u.HomeDir}
	if home, err := os.UserHomeDir(); err == nil && name == "" {
		a.Home = home // as the rest of this program has it
	}
	a.UID, _ = strconv.Atoi(u.Uid) // not a number on Windows, where nobody asks
	a.GID, _ = strconv.Atoi(u.Gid)
	return a, nil
}
