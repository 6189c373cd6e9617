package runner

import (
	"errors"
	"runtime"
	"sync"

	"golang.org/x/sys/windows"
)

var setThreadExecutionState = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetThreadExecutionState")

// Flags of SetThreadExecutionState (winbase.h).
const (
	esSystemRequired = 0x00000001
	esContinuous     = 0x80000000
)

// SystemInhibitor is that of this system.
func SystemInhibitor() Inhibitor { return executionState{} }

// executionState is the state of a thread: the request ends with it, so the hold has a thread of its own.
type executionState struct{}

func (executionState) Check() error { return setThreadExecutionState.Find() }

func (executionState) Take() (*Hold, error) {
	taken, release, gone := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine, and its request with it
		if was, _, err := setThreadExecutionState.Call(esContinuous | esSystemRequired); was == 0 {
			taken <- errors.Join(errors.New("SetThreadExecutionState"), err)
			return
		}
		taken <- nil
		<-release
		_, _, _ = setThreadExecutionState.Call(esContinuous)
	}()
	if err := <-taken; err != nil {
		return nil, err
	}
	return &Hold{What: "idle sleep", Release: sync.OnceFunc(func() {
		close(release)
		<-gone
	})}, nil
}
