package runner

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"lanjobs/task"
)

// logEnd is the offset behind the last byte of a stream.
func logEnd(segments []segment, s stream) (int64, error) {
	last := segments[len(segments)-1]
	end := last.start[s]
	err := eachRecord(last, s, func(r *bufio.Reader, n int64) error {
		_, err := r.Discard(int(n))
		if err == nil {
			end += n
		}
		return err
	})
	if err == nil {
		_, err = last.src.Seek(int64(logHeader), io.SeekStart)
	}
	return end, err
}

// logTail is the end of a failed attempt's output for its record. place is where the guard packed it, nil if it did not. Programs
// that buffer stdout write their error first and all the rest after it: then half of the tail is stderr's, at the end.
func logTail(dir string, x task.ExecutionID, place *packPlace, n int) string {
	open := func() ([]segment, error) { return openSegments(dir, x) }
	if place != nil {
		open = func() ([]segment, error) {
			seg, err := readPlace(dir, *place, x)
			return []segment{seg}, err
		}
	}
	both, bad := streamTail(open, streamBoth, n), streamTail(open, streamErr, n/2)
	if strings.Contains(both, string(lastLines([]byte(bad), 1))) {
		return both
	}
	return streamTail(open, streamBoth, n-len(bad)) + bad
}

// streamTail is up to n bytes from a stream's end as text, from the start of a line if it is cut.
func streamTail(open func() ([]segment, error), s stream, n int) string {
	segments, err := open()
	if err != nil {
		return ""
	}
	defer closeSegments(segments)
	end, err := logEnd(segments, s)
	if err != nil {
		return ""
	}
	p, err := copyLog(segments, s, max(end-int64(n), 0), n)
	if err != nil {
		return ""
	}
	data := p.Data
	if end > int64(n) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 && i+1 < len(data) {
			data = data[i+1:]
		}
	}
	text := bytes.ToValidUTF8(data, []byte("?"))
	return string(text[max(len(text)-n, 0):])
}

func lastLines(data []byte, n int) []byte {
	at := len(data)
	if at > 0 && data[at-1] == '\n' {
		at--
	}
	for ; n > 0 && at >= 0; n-- {
		at = bytes.LastIndexByte(data[:max(at, 0)], '\n')
	}
	return data[at+1:]
}
