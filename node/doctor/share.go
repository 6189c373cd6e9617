package doctor

import (
	"slices"
	"strings"
)

// shares are file systems of other machines. A database with memory maps and locks is not safe on them; "" and what is not in the
// list is taken for a disk of this machine.
var shares = []string{"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afpfs", "webdav", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "ncpfs", "remote",
	"fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.davfs", "fuse.curlftpfs", "fuse.juicefs", "fuse.mfs", "fuse.ceph-fuse", "fuse.smbnetfs", "fuse.nfs"}

// IsNetwork tells whether a file system is another machine's.
func IsNetwork(system string) bool { return slices.Contains(shares, strings.ToLower(system)) }
