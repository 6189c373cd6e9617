package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"golang.org/x/term"
)

// What a command reads may never end: a terminal, a pipe that nobody writes to, a device. It waits for that no longer than for
// anything else, Ctrl-C and --timeout included, and takes no more than it has use for.

// interruptible ends reads with ctx. What was being read then is left to the end of the program.
func (c *call) interruptible(ctx context.Context) {
	c.gone, c.stdin = ctx, &goneReader{ctx, c.world.stdin}
}

// goneReader reads until its context ends.
type goneReader struct {
	ctx context.Context
	r   io.Reader
}

func (g *goneReader) Read(p []byte) (int, error) {
	text, err := whileHere(g.ctx, func() ([]byte, error) {
		own := make([]byte, len(p)) // p belongs to a caller who may have gone
		n, err := g.r.Read(own)
		return own[:n], err
	})
	return copy(p, text), err
}

// whileHere calls read, and waits for it no longer than for ctx.
func whileHere(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// errDirectory is what a directory answers to who would read it as a file.
var errDirectory = errors.New("is a directory")

// readLimited reads the beginning of a file.
func (c *call) readLimited(file string, limit int64) ([]byte, error) {
	return whileHere(c.gone, func() ([]byte, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, &fs.PathError{Op: "read", Path: file, Err: errDirectory}
		}
		return io.ReadAll(io.LimitReader(f, limit))
	})
}

// maxSecret is more than a token or a passphrase has.
const maxSecret = 4096

// readSmall reads a file with one line in it.
func (c *call) readSmall(name string) ([]byte, error) {
	text, err := c.readLimited(c.inDir(name), maxSecret+1)
	if err == nil && len(text) > maxSecret {
		err = fmt.Errorf("%s is larger than %d KiB", name, maxSecret>>10)
	}
	return text, err
}

// readWhole reads a file of any size, but none that may have no end.
func (c *call) readWhole(name string) ([]byte, error) {
	file := c.inDir(name)
	if info, err := os.Stat(file); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return nil, usage(c.path, "%s is no file.", name)
	}
	return c.readLimited(file, math.MaxInt64)
}

// readSecret reads a line from the terminal, unseen. Whoever is interrupted finds a terminal that shows what is typed.
func readSecret(ctx context.Context) ([]byte, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	text, err := whileHere(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	if ctx.Err() != nil {
		_ = term.Restore(fd, before)
	}
	return text, err
}
