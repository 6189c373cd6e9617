package runner

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"lanjobs/task"
)

var (
	powrprof         = windows.NewLazySystemDLL("powrprof.dll")
	registerSuspend  = powrprof.NewProc("PowerRegisterSuspendResumeNotification")
	unregisterResume = powrprof.NewProc("PowerUnregisterSuspendResumeNotification")
)

// From winuser.h: the recipient is a callback, and what it is told.
const (
	deviceNotifyCallback  = 2
	pbtSuspend            = 4
	pbtResumeSuspend      = 7
	pbtResumeAutomatic    = 18
	windowsSleepBudget    = 1500 * time.Millisecond // Windows gives two seconds
	notificationsOldError = "this Windows does not tell of sleeps"
)

// suspendCallback is made once: the system's table of callbacks only grows. sleeper is who is told.
var suspendCallback = sync.OnceValue(func() uintptr {
	return windows.NewCallback(func(_ uintptr, kind uintptr, _ uintptr) uintptr {
		sleeperMu.Lock()
		s := sleeper
		sleeperMu.Unlock()
		switch {
		case s == nil:
		case kind == pbtSuspend:
			s.Sleeps(windowsSleepBudget)
		case kind == pbtResumeSuspend || kind == pbtResumeAutomatic:
			s.Woke()
		}
		return 0
	})
})

var (
	sleeperMu sync.Mutex
	sleeper   Sleeper
)

// WatchSleep tells s of each sleep until ctx ends. The system calls from a thread of its own and waits for the answer.
func WatchSleep(ctx context.Context, _ task.Clock, s Sleeper) error {
	if err := registerSuspend.Find(); err != nil {
		s.Watching(fmt.Errorf("%s: %w", notificationsOldError, err))
		return nil
	}
	sleeperMu.Lock()
	sleeper = s
	sleeperMu.Unlock()
	params := struct{ callback, context uintptr }{callback: suspendCallback()}
	var handle uintptr
	if code, _, _ := registerSuspend.Call(deviceNotifyCallback, uintptr(unsafe.Pointer(&params)), uintptr(unsafe.Pointer(&handle))); code != 0 {
		s.Watching(fmt.Errorf("%s: %w", notificationsOldError, windows.Errno(code)))
		return nil
	}
	s.Watching(nil)
	<-ctx.Done()
	_, _, _ = unregisterResume.Call(handle)
	sleeperMu.Lock()
	sleeper = nil
	sleeperMu.Unlock()
	return nil
}
