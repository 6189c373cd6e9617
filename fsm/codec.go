package fsm

import (
	"encoding/binary"
	"errors"
	"math"
)

// The binary form of commands and snapshots: varints, length-prefixed strings, and length-prefixed records whose unknown
// trailing fields are skipped, so that a newer writer's added fields do not stop an older reader.

var errShort = errors.New("data ends early or a length is wrong")

type enc struct {
	b     []byte
	level int // of a snapshot: 1 leaves out what came later
}

func (e *enc) u64(v uint64)  { e.b = binary.AppendUvarint(e.b, v) }
func (e *enc) i64(v int64)   { e.b = binary.AppendVarint(e.b, v) }
func (e *enc) num(v int)     { e.i64(int64(v)) }
func (e *enc) str(s string)  { e.u64(uint64(len(s))); e.b = append(e.b, s...) }
func (e *enc) raw(p []byte)  { e.u64(uint64(len(p))); e.b = append(e.b, p...) }
func (e *enc) f64(v float64) { e.b = binary.LittleEndian.AppendUint64(e.b, math.Float64bits(v)) }
func (e *enc) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// rec writes what f writes as one record.
func (e *enc) rec(f func(*enc)) {
	// Most records are under 128 bytes: leave one byte for the length and move the body only when it needs more.
	at := len(e.b)
	e.b = append(e.b, 0)
	f(e)
	n := len(e.b) - at - 1
	if n < 0x80 {
		e.b[at] = byte(n)
		return
	}
	var head [binary.MaxVarintLen64]byte
	h := binary.PutUvarint(head[:], uint64(n))
	e.b = append(e.b, head[:h-1]...)
	copy(e.b[at+h:], e.b[at+1:at+1+n])
	copy(e.b[at:], head[:h])
}

func list[T any](e *enc, vs []T, f func(*enc, T)) {
	e.u64(uint64(len(vs)))
	for _, v := range vs {
		f(e, v)
	}
}

// dec reads; after the first error every read gives zero values and the error stays.
type dec struct {
	b     []byte
	err   error
	level int               // of a snapshot
	words map[string]string // texts that come again and again, one copy each; nil = none
}

func (d *dec) fail() {
	if d.err == nil {
		d.err = errShort
	}
	d.b = nil
}

func (d *dec) u64() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *dec) i64() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// most reads a number that is not above a limit.
func (d *dec) most(limit uint64) uint64 {
	v := d.u64()
	if v > limit {
		d.fail()
		return 0
	}
	return v
}

func (d *dec) num() int { return narrow(d.i64()) }

// narrow makes an int of what was read. Replicas differ in how wide theirs is, so what 32 bits do not hold becomes the
// nearest that they do.
func narrow(v int64) int { return int(min(max(v, math.MinInt32), math.MaxInt32)) }

// raw aliases the input: what is kept of it must be copied, or it would hold a whole log entry or snapshot in memory.
func (d *dec) raw() []byte {
	n := d.u64()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *dec) str() string { return string(d.raw()) }

// word is str for a text that many records share.
func (d *dec) word() string {
	p := d.raw()
	if w, known := d.words[string(p)]; known {
		return w
	}
	w := string(p)
	if d.words != nil {
		d.words[w] = w
	}
	return w
}

func (d *dec) bool() bool {
	if len(d.b) == 0 {
		d.fail()
		return false
	}
	v := d.b[0] != 0
	d.b = d.b[1:]
	return v
}

func (d *dec) f64() float64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := math.Float64frombits(binary.LittleEndian.Uint64(d.b))
	d.b = d.b[8:]
	return v
}

// rec reads one record with f; what f leaves is skipped.
func (d *dec) rec(f func(*dec)) {
	sub := dec{b: d.raw(), words: d.words, level: d.level}
	if d.err != nil {
		return
	}
	f(&sub)
	if sub.err != nil && d.err == nil {
		d.err = sub.err
	}
}

// more tells whether a record has further fields: an added field is read only if it is there.
func (d *dec) more() bool { return d.err == nil && len(d.b) > 0 }

// count reads the length of a list whose elements take at least one byte each, so that a forged length cannot allocate.
func (d *dec) count() int {
	n := d.u64()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func readList[T any](d *dec, f func(*dec) T) []T {
	n := d.count()
	if n == 0 {
		return nil
	}
	out := make([]T, 0, min(n, 4096))
	for i := 0; i < n && d.err == nil; i++ {
		out = append(out, f(d))
	}
	return out
}
