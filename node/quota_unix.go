//go:build unix

package node

import "syscall"

// errQuota: the user's share of the disk is used up.
const errQuota = syscall.EDQUOT
