package cli

import (
	"bytes"
	"io"
	"sync"
)

// writeError is a fault of our own output, as opposed to one of reading: the pipe's reader has gone.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// sink joins the output of several attempts into one stream. Whole lines stay whole.
type sink struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *sink) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.out.Write(b); err != nil {
		return &writeError{err}
	}
	return nil
}

// maxPartialLine bounds what is kept of a line that does not end.
const maxPartialLine = 64 << 10

// source writes the output of one attempt to a sink: as it is, or with a prefix before each line.
type source struct {
	sink    *sink
	prefix  string
	partial []byte
}

// Write takes a piece of output; a line that is not complete waits for its rest.
func (s *source) Write(b []byte) (int, error) {
	if s.prefix == "" {
		return len(b), s.sink.write(b)
	}
	s.partial = append(s.partial, b...)
	end := bytes.LastIndexByte(s.partial, '\n') + 1
	if end == 0 && len(s.partial) > maxPartialLine {
		end = len(s.partial)
	}
	if end == 0 {
		return len(b), nil
	}
	err := s.sink.write(s.prefixed(s.partial[:end]))
	s.partial = append(s.partial[:0], s.partial[end:]...)
	return len(b), err
}

func (s *source) prefixed(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		out = append(out, s.prefix...)
		out = append(out, line...)
	}
	if n := len(out); n > 0 && out[n-1] != '\n' {
		out = append(out, '\n')
	}
	return out
}

// Close writes what is left of a last line without an end.
func (s *source) Close() error {
	rest := s.partial
	s.partial = nil
	return s.sink.write(s.prefixed(rest))
}
