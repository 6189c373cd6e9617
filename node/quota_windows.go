package node

import "syscall"

// errQuota is ERROR_DISK_FULL: the disk is full.
const errQuota = syscall.Errno(112)
