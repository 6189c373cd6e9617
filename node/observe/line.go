package observe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// readBytes is how much of a file is read at once.
const readBytes = 256 << 10

// lineReader gives a file's whole lines from an offset on.
type lineReader struct {
	r      *bufio.Reader
	offset int64 // behind the last line given
	long   []byte
}

func newLineReader(f io.ReaderAt, offset int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(io.NewSectionReader(f, offset, 1<<62), readBytes), offset: offset}
}

// next gives a line without its end, valid until the next call; io.EOF when there is no further whole line.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = l.r.ReadSlice('\n')
			l.long = append(l.long, line...)
		}
		line = l.long
	}
	if err != nil {
		return nil, err
	}
	l.offset += int64(len(line))
	return line[:len(line)-1], nil
}

// eachLineBackward gives a file's whole lines, the last first, until use gives false.
func eachLineBackward(f *os.File, use func(line []byte) bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var rest []byte // what stands before the first line end of the chunks read so far
	first := true   // what follows the very last line end is no whole line
	for at := info.Size(); at > 0; {
		n := min(at, readBytes)
		at -= n
		chunk := make([]byte, n, int(n)+len(rest))
		if _, err := f.ReadAt(chunk, at); err != nil {
			return err
		}
		chunk = append(chunk, rest...)
		for {
			i := bytes.LastIndexByte(chunk, '\n')
			if i < 0 {
				break
			}
			if !first && !use(chunk[i+1:]) {
				return nil
			}
			first = false
			chunk = chunk[:i]
		}
		rest = chunk
	}
	if !first {
		use(rest)
	}
	return nil
}
