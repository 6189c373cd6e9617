package transport

import (
	"encoding/binary"
	"fmt"
	"math"

	"lanjobs/task"
)

// packer appends fields.
type packer struct{ b []byte }

func (p *packer) uint(v uint64) { p.b = binary.AppendUvarint(p.b, v) }
func (p *packer) int(v int64)   { p.b = binary.AppendVarint(p.b, v) }
func (p *packer) text(s string) { p.uint(uint64(len(s))); p.b = append(p.b, s...) }
func (p *packer) flag(v bool) {
	if v {
		p.uint(1)
	} else {
		p.uint(0)
	}
}

// record writes what f writes, its length in front. The length takes a fixed number of bytes, so that nothing is moved.
func (p *packer) record(f func(*packer)) {
	at := len(p.b)
	p.b = append(p.b, 0, 0, 0, 0)
	f(p)
	binary.LittleEndian.PutUint32(p.b[at:], uint32(len(p.b)-at-4)) // a message is far smaller (MaxMessageBytes)
}

// unpacker reads fields. Past the end every field is zero, which is how an older writer leaves out newer fields; a length or
// number that cannot be is bad, and stays so.
type unpacker struct {
	b   []byte
	bad bool
}

func (u *unpacker) fail() {
	u.b, u.bad = nil, true
}

func (u *unpacker) uint() uint64 {
	if len(u.b) == 0 {
		return 0
	}
	v, n := binary.Uvarint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

func (u *unpacker) int() int64 {
	if len(u.b) == 0 {
		return 0
	}
	v, n := binary.Varint(u.b)
	if n <= 0 {
		u.fail()
		return 0
	}
	u.b = u.b[n:]
	return v
}

// num is an int field: on machines with ints of 32 bits what does not fit is bad.
func (u *unpacker) num() int {
	v := u.int()
	if v < math.MinInt32 || v > math.MaxInt32 {
		u.fail()
		return 0
	}
	return int(v)
}

func (u *unpacker) flag() bool { return u.uint() != 0 }

func (u *unpacker) text() string {
	n := u.uint()
	if n > uint64(len(u.b)) {
		u.fail()
		return ""
	}
	s := string(u.b[:n])
	u.b = u.b[n:]
	return s
}

// maxPacked bounds a list: a node has task.MaxSlots attempts and some thousand reports at most.
const maxPacked = 1 << 16

// count is the number of elements that follow, of at least least bytes each.
func (u *unpacker) count(least int) int {
	n := u.uint()
	if n > uint64(min(len(u.b)/least, maxPacked)) {
		u.fail()
		return 0
	}
	return int(n)
}

func (u *unpacker) end(what string) error {
	if u.bad || len(u.b) > 0 {
		return fmt.Errorf("%w: damaged list of %s", task.ErrInvalid, what)
	}
	return nil
}

func unpackList[T any](u *unpacker, read func(*unpacker, *T)) []T {
	n := u.count(4)
	if n == 0 {
		return nil
	}
	out := make([]T, n)
	for i := range out {
		if len(u.b) < 4 {
			u.fail()
			return nil
		}
		size := binary.LittleEndian.Uint32(u.b)
		if uint64(size) > uint64(len(u.b)-4) {
			u.fail()
			return nil
		}
		r := unpacker{b: u.b[4 : 4+size]}
		u.b = u.b[4+size:]
		if read(&r, &out[i]); r.bad {
			u.fail()
			return nil
		}
	}
	return out
}
