package doctor

import "testing"

func TestMountOfAFolder(t *testing.T) {
	const table = `26 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 26 0:30 / /mnt rw - nfs4 nas:/x rw
31 30 0:31 / /mnt/local rw shared:1 master:2 - xfs /dev/sdb rw
32 26 0:32 / /home/anna/my\040share rw - cifs //pc/x rw
33 26 0:33 / /media rw - fuse.sshfs me@pc: rw
34 26 0:34 / /wsl rw - 9p C: rw
35 31 0:35 / /mnt/local rw - tmpfs none rw
`
	for dir, want := range map[string]string{"/data": "ext4", "/mnt": "nfs4", "/mnt/a/b": "nfs4", "/mnt/local/x": "tmpfs", "/mntx": "ext4",
		"/home/anna/my share/lanjobs": "cifs", "/media/x": "fuse.sshfs", "/wsl/c": "9p"} {
		got := mountOf(table, dir)
		if got != want {
			t.Errorf("%s is on %q, want %q", dir, got, want)
		}
		if IsNetwork(got) != (got != "ext4" && got != "tmpfs") {
			t.Errorf("%s is a share: %v", got, IsNetwork(got))
		}
	}
	if s := FileSystem("/proc"); s != "proc" {
		t.Errorf("/proc is on %q", s)
	}
}
