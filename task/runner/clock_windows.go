package runner

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernelbase       = windows.NewLazySystemDLL("kernelbase.dll")
	queryInterrupt   = kernelbase.NewProc("QueryInterruptTime")         // counts sleep
	queryUnbiased    = kernelbase.NewProc("QueryUnbiasedInterruptTime") // does not
	interruptPerUnit = 100 * time.Nanosecond
)

func bootTime() time.Duration { return readInterruptTime(queryInterrupt) }

func awakeTime() time.Duration { return readInterruptTime(queryUnbiased) }

func readInterruptTime(p *windows.LazyProc) time.Duration {
	var t uint64
	_, _, _ = p.Call(uintptr(unsafe.Pointer(&t)))
	return time.Duration(t) * interruptPerUnit
}
