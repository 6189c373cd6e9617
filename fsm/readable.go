package fsm

import (
	"errors"
	"fmt"
)

// SnapshotReadable tells from the first bytes of a snapshot, sixteen will do, whether this binary knows its form. An error that
// wraps ErrUnknownCommand: it is a later one.
func SnapshotReadable(head []byte) error {
	if len(head) < len(snapshotMagic) || string(head[:len(snapshotMagic)]) != snapshotMagic {
		return errors.New("not a lanjobs snapshot")
	}
	d := dec{b: head[len(snapshotMagic):]}
	if v := d.u64(); d.err == nil && v > snapshotVersion {
		return fmt.Errorf("%w (snapshot format %d)", ErrUnknownCommand, v)
	}
	return d.err
}
