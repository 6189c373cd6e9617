package node

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shirou/gopsutil/v4/disk"
)

// A disk that takes nothing more is no reason to die: Raft gives up the lead when an entry cannot be written, and the machine goes
// on by itself when there is room again. Only Raft's term and vote are different: it panics if they cannot be written, since going
// on without them could vote twice. So their writing waits.

const (
	diskEvery   = 10 * time.Second
	diskRetry   = time.Second
	diskLow     = 64 << 20
	diskNothing = 1 << 20
)

// diskTrouble tells whether a write failed for want of room or because the disk became read-only.
func diskTrouble(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, errQuota) || errors.Is(err, syscall.EROFS)
}

// patientStore is Raft's store whose small writes wait for a full disk instead of failing. While one waits, Raft stands still:
// it neither leads nor votes.
type patientStore struct {
	raft.StableStore
	wait func(error) (again bool) // false: Raft is ending
}

func (p patientStore) patiently(write func() error) error {
	for {
		err := write()
		if !diskTrouble(err) || !p.wait(err) {
			return err
		}
	}
}

// Set is raft.StableStore.
func (p patientStore) Set(key, value []byte) error {
	return p.patiently(func() error { return p.StableStore.Set(key, value) })
}

// SetUint64 is raft.StableStore.
func (p patientStore) SetUint64(key []byte, value uint64) error {
	return p.patiently(func() error { return p.StableStore.SetUint64(key, value) })
}

// awaitDisk waits a little after a write that failed. It may be called from Raft's own goroutine.
func (m *machine) awaitDisk(err error) bool {
	m.tellDisk(fmt.Sprintf("The disk that holds %s takes nothing more (%v): this machine neither leads nor votes until it does. Make room there; it goes on by itself.", m.cfg.DataDir, plainDisk(err)))
	select {
	case <-m.clock.After(diskRetry):
		return true
	case <-m.ended:
		return false
	}
}

func plainDisk(err error) string {
	if errors.Is(err, syscall.EROFS) {
		return "it is read-only"
	}
	return "it is full"
}

func (m *machine) tellDisk(text string) {
	if m.trouble.note(aboutDisk, text) && text != "" {
		m.log.Error(text)
	}
}

// watchDisk says when the data folder's disk is nearly full, and takes it back when there is room.
func (m *machine) watchDisk(ctx context.Context) error {
	for {
		m.lookAtDisk()
		select {
		case <-ctx.Done():
			return nil
		case <-m.clock.After(diskEvery):
		}
	}
}

func (m *machine) lookAtDisk() {
	u, err := disk.Usage(m.cfg.DataDir)
	switch {
	case err != nil:
	case u.Free < diskNothing:
		m.tellDisk(fmt.Sprintf("The disk that holds %s is full: nothing can be recorded here, and this machine does not lead. Make room there; it goes on by itself.", m.cfg.DataDir))
	case u.Free < diskLow:
		m.tellDisk(fmt.Sprintf("The disk that holds %s has only %d MB left. When nothing is left, this machine neither leads nor votes.", m.cfg.DataDir, u.Free>>20))
	default:
		m.tellDisk("")
	}
}
