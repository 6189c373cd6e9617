package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// caffeinate comes with every macOS. It can keep a machine from falling asleep by itself; a closed lid and the person's own "Sleep"
// are obeyed by macOS nevertheless.
const caffeinate = "/usr/bin/caffeinate"

// SystemInhibitor is that of this system.
func SystemInhibitor() Inhibitor { return caffeinated{} }

type caffeinated struct{}

func (caffeinated) Check() error {
	if _, err := os.Stat(caffeinate); err != nil {
		return fmt.Errorf("%s is not there", caffeinate)
	}
	return nil
}

// Take starts one that also ends when this process does (-w), however that comes.
func (c caffeinated) Take() (*Hold, error) {
	cmd := exec.Command(caffeinate, "-i", "-w", strconv.Itoa(os.Getpid()))
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(c.Check(), err)
	}
	lost := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(lost)
	}()
	return &Hold{What: "idle sleep", Lost: lost, Release: sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		<-lost
	})}, nil
}
