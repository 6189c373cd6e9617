package doctor

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// FileSystem names the kind of file system that a folder is on, "" if the system does not tell. A share is "remote".
func FileSystem(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(abs) + `\`)
	if err != nil {
		return ""
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "remote"
	}
	var name [64]uint16
	if windows.GetVolumeInformation(root, nil, 0, nil, nil, nil, &name[0], uint32(len(name))) != nil {
		return ""
	}
	return strings.ToLower(windows.UTF16ToString(name[:]))
}
