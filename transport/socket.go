package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"lanjobs/task"
)

// Errors of the door to the node on this machine.
var (
	// ErrNoNode: no node listens on the socket.
	ErrNoNode = errors.New("no node is running on this machine")
	// ErrSocketPermission: the node here belongs to another user.
	ErrSocketPermission = errors.New("the node here belongs to another user")
)

const (
	socketName = "lanjobs.sock"
	// maxSocketPath is what macOS takes (104 bytes with the zero at the end); Linux takes a little more.
	maxSocketPath = 103
)

// SocketPath is where the node of a data folder listens for this machine's owner: lanjobs.sock in it. Unix limits such paths to
// some hundred bytes; for a longer one it is a short path in a folder of this user. All systems have these sockets, Windows
// since version 10.
func SocketPath(dataDir string) string {
	if abs, err := filepath.Abs(dataDir); err == nil {
		dataDir = abs
	}
	path := filepath.Join(dataDir, socketName)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(dataDir))
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" || len(base) > maxSocketPath/2 {
		base = os.TempDir()
	}
	return filepath.Join(base, "lanjobs-"+strconv.Itoa(os.Getuid()), hex.EncodeToString(sum[:8])+".sock")
}

// ListenSocket opens the socket of a data folder for its owner only. What a node that died left there is removed; one that
// still answers gives task.ErrConflict. The lock on the data folder must be held, or two starting nodes could remove each
// other's.
func ListenSocket(ctx context.Context, dataDir string) (net.Listener, error) {
	path := SocketPath(dataDir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open the node's socket: %w", err)
	}
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("open the node's socket: %w", err)
	}
	if conn, err := DialSocket(ctx, path); err == nil {
		_ = conn.Close()
		return nil, task.NewProblem(task.ErrConflict, "a node is running with this data folder already: "+dataDir, "")
	} else if !errors.Is(err, ErrNoNode) {
		return nil, fmt.Errorf("open the node's socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the node's socket: %w", err)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the node's socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("open the node's socket: %w", err)
	}
	return ln, nil
}

// DialSocket connects to the node on this machine: ErrNoNode, ErrSocketPermission, or what the system said.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, socketFault(err)
	}
	return conn, nil
}

// socketFault tells apart why nobody answered on a socket.
func socketFault(err error) error {
	errno, _ := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (%w)", ErrSocketPermission, err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ECONNREFUSED), errnoText(errno) == "connection refused":
		return ErrNoNode
	}
	return err
}
