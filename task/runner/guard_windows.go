package runner

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// settle: the machine's shutdown reaches a process as SIGTERM.
func (g *guard) settle() error {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range caught {
			if s == syscall.SIGTERM {
				g.stopAll()
			}
		}
	}()
	return nil
}

// child is a command's own process with the job object that holds it and everything it starts. The object dies with the guard,
// and with it all of them: the kernel does here what the parent-death signal does on Linux.
type child struct {
	pid int
	job windows.Handle
}

// terminate sends CTRL_BREAK to the command's process group (UX 3).
func (c child) terminate() {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(c.pid)) // a program without console only meets the kill
}

func (c child) release() {
	if c.job != 0 {
		_ = windows.CloseHandle(c.job)
	}
}

var resumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// fork starts the process halted, so that it can start nothing outside its job object.
func (g *guard) fork(a *guarded, files []*os.File) error {
	job, err := makeJob()
	if err != nil {
		return err
	}
	l := &a.launch
	p, err := os.StartProcess(l.Path, l.Args, &os.ProcAttr{Dir: l.Dir, Env: l.Env, Files: files,
		Sys: &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}})
	if err != nil {
		return errors.Join(err, windows.CloseHandle(job))
	}
	if err := confine(p.Pid, job); err != nil {
		return errors.Join(err, p.Kill(), windows.CloseHandle(job))
	}
	g.noteBirth(a, child{p.Pid, job})
	go func() {
		state, err := p.Wait()
		if err != nil {
			g.log.Error("waiting for a command", "execution", a.x, "error", err)
		}
		g.mainEnded(a, state)
	}()
	return nil
}

func makeJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return 0, errors.Join(err, windows.CloseHandle(job))
	}
	return job, nil
}

func confine(pid int, job windows.Handle) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.PROCESS_SUSPEND_RESUME, false, uint32(pid))
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	if err := windows.AssignProcessToJobObject(job, h); err != nil {
		return err
	}
	if status, _, _ := resumeProcess.Call(uintptr(h)); status != 0 {
		return fmt.Errorf("NtResumeProcess: status %#x", status)
	}
	return nil
}

// reaper: each process is waited for by its own goroutine here.
func (g *guard) reaper() {}

func (g *guard) mainEnded(a *guarded, end any) {
	status := exitRecord{Code: 1}
	if s, ok := end.(*os.ProcessState); ok && s != nil {
		status.Code = s.ExitCode()
	}
	g.mu.Lock()
	delete(g.mains, a.pid)
	if a.done&partMain == 0 {
		a.status = status
	}
	g.kill(a)
	g.mu.Unlock()
	g.over(a, partMain)
}

// jobCounts is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobCounts struct {
	userTime, kernelTime, periodUserTime, periodKernelTime int64
	pageFaults, total, active, terminated                  uint32
}

// sweep ends whatever is in the job object and tells how many processes that were.
func (g *guard) sweep(a *guarded, _ bool) (left []int, main bool) {
	g.mu.Lock()
	main = a.done&partMain == 0
	g.mu.Unlock()
	var n jobCounts
	err := windows.QueryInformationJobObject(a.child.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&n)), uint32(unsafe.Sizeof(n)), nil)
	if err != nil || n.active == 0 {
		return nil, main
	}
	_ = windows.TerminateJobObject(a.child.job, 1) // tried again until it is empty
	return make([]int, n.active), main
}

func startFailure(err error, l *launch) exitRecord {
	code := 126
	if errors.Is(err, windows.ERROR_FILE_NOT_FOUND) || errors.Is(err, windows.ERROR_PATH_NOT_FOUND) {
		code = 127
	}
	return exitRecord{Code: code, StartError: fmt.Sprintf("%s: %v", l.Path, err)}
}

// readNow is never needed: a pipe's other ends are closed with the job object.
func readNow(uintptr, []byte) int { return 0 }

// threadID never equals the process's id: the main thread is nothing special here.
func threadID() int { return 0 }

func oomKills() (uint64, bool) { return 0, false }
