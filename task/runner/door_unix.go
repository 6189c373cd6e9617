//go:build unix

package runner

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// door is a listening unix socket. Its file carries the name of one attempt after the other, since making one costs the file system
// ten times what a rename does.
type door struct {
	file *os.File
	raw  syscall.RawConn

	mu     sync.Mutex // orders accepting against changes of the tenant
	tenant *endpoint
}

// doors keeps the ones that nobody needs just now.
type doors struct {
	dir  string
	mu   sync.Mutex
	free []spareDoor
	made int
}

type spareDoor struct {
	door *door
	path string
}

// newDoor makes a socket that only this user can use; what a dead process left at the path is replaced.
func newDoor(path string) (*door, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	fd, err := privateSocket()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, errors.Join(&os.PathError{Op: "bind", Path: path, Err: err}, f.Close())
	}
	d := &door{file: f}
	if err := errors.Join(os.Chmod(path, 0o600), unix.Listen(fd, unix.SOMAXCONN)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	d.raw, err = f.SyscallConn()
	return d, err
}

// open gives an attempt its socket.
func (s *doors) open(r *Runner, e *endpoint) error {
	path := e.paths.socket
	s.mu.Lock()
	var spare spareDoor
	theirs := e.rec.Owner != (owner{}) // such a door is not handed on
	if n := len(s.free); n > 0 && !theirs {
		spare, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	if d := spare.door; d != nil {
		d.let(e)
		if os.Rename(spare.path, path) == nil {
			e.door = d
			return nil
		}
		d.close()
	}
	d, err := newDoor(path)
	if err != nil {
		return err
	}
	if err := e.rec.Owner.give(path); err != nil {
		d.close()
		return err
	}
	d.let(e)
	e.door = d
	r.wg.Go(func() { d.accept(r.reception) })
	return nil
}

// take gets a door back when its attempt has ended. If the task removed its socket the door leads nowhere and is closed.
func (s *doors) take(e *endpoint, closing bool) {
	d := e.door
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	path := filepath.Join(s.dir, "d-"+strconv.Itoa(s.made))
	if closing || e.rec.Owner != (owner{}) || len(s.free) >= maxSpares || os.Rename(e.paths.socket, path) != nil {
		d.close()
		_ = os.Remove(e.paths.socket)
		return
	}
	d.let(nil)
	s.free = append(s.free, spareDoor{d, path})
}

// close ends all doors that nobody uses.
func (s *doors) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.free {
		f.door.close()
		_ = os.Remove(f.path)
	}
	s.free = nil
}

// let changes whose door it is. Whoever still waits in it came for the last tenant and is sent away first: nothing that one
// attempt sent may be taken for another's.
func (d *door) let(e *endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.raw.Control(func(fd uintptr) {
		for {
			conn, err := acceptNow(int(fd))
			if err != nil {
				break
			}
			_ = unix.Close(conn)
		}
	})
	d.tenant = e
}

func (d *door) close() { _ = d.file.Close() }

// accept runs as long as the door exists. The tenant is read in the same step in which a connection is taken.
func (d *door) accept(c *reception) {
	for {
		var conn int
		var e *endpoint
		var err error
		closed := d.raw.Read(func(fd uintptr) bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			conn, err = acceptNow(int(fd))
			e = d.tenant
			return !errors.Is(err, unix.EAGAIN)
		})
		switch {
		case closed != nil:
			return
		case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM):
			c.pause()
			continue
		case err != nil:
			continue // the other side left
		case e == nil:
			_ = unix.Close(conn)
			continue
		}
		f := os.NewFile(uintptr(conn), "task")
		nc, err := net.FileConn(f)
		closeQuietly(f)
		if err == nil {
			c.admit(nc, e)
		}
	}
}
