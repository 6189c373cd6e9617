package doctor

import "golang.org/x/sys/unix"

// FileSystem names the kind of file system that a folder is on, "" if the system does not tell.
func FileSystem(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}
