package fsm

// pageSize is how many records share a page: small enough that a clone after a snapshot is cheap, large enough that the
// page table of a million shards is a few thousand pointers.
const pageSize = 256

// page belongs to the epoch in which it was made; a later epoch clones it before writing.
type page[T any] struct {
	epoch uint64
	recs  []T // pageSize of them, or fewer in the last page of a fixed array: most jobs have a shard or two
}

// cow is a growable array in copy-on-write pages. A page that was never written, or was given back, is nil: its records
// read as zero.
type cow[T any] struct {
	pages []*page[T]
	first int // pages before this one were given back and have no place in the table
	n     int
	fixed bool // never grows
	zero  T
}

// newCow is an array of n zero records, now and for ever.
func newCow[T any](n int) cow[T] {
	return cow[T]{n: n, fixed: true, pages: make([]*page[T], (n+pageSize-1)/pageSize)}
}

// newCowFrom is an array of n zero records that may grow, of which those before from stay so and take no place.
func newCowFrom[T any](n, from int) cow[T] {
	c := cow[T]{n: n, first: from / pageSize}
	c.pages = make([]*page[T], (n+pageSize-1)/pageSize-c.first)
	return c
}

// at is for reading only.
func (c *cow[T]) at(i int) *T {
	if k := i/pageSize - c.first; k >= 0 && c.pages[k] != nil {
		return &c.pages[k].recs[i%pageSize]
	}
	return &c.zero
}

// mut is for writing within the epoch; i is not before the first page.
func (c *cow[T]) mut(i int, epoch uint64) *T {
	slot := &c.pages[i/pageSize-c.first]
	if *slot == nil {
		size := pageSize
		if c.fixed {
			size = min(size, c.n-i/pageSize*pageSize)
		}
		*slot = &page[T]{epoch, make([]T, size)}
	} else if (*slot).epoch != epoch {
		*slot = &page[T]{epoch, append([]T(nil), (*slot).recs...)}
	}
	return &(*slot).recs[i%pageSize]
}

func (c *cow[T]) push(v T, epoch uint64) {
	if c.n == (c.first+len(c.pages))*pageSize {
		c.pages = append(c.pages, nil)
	}
	*c.mut(c.n, epoch) = v
	c.n++
}

// grow appends a zero record to an array, also to one made with a fixed size.
func (c *cow[T]) grow(epoch uint64) {
	if c.n == (c.first+len(c.pages))*pageSize {
		c.pages = append(c.pages, nil)
	}
	c.n++
	slot := &c.pages[len(c.pages)-1]
	if need := c.n - (c.first+len(c.pages)-1)*pageSize; *slot != nil && need > len((*slot).recs) {
		recs := make([]T, min(max(2*len((*slot).recs), need), pageSize))
		copy(recs, (*slot).recs)
		*slot = &page[T]{epoch, recs}
	}
}

// freeze is a copy that later writes in a higher epoch do not touch.
func (c *cow[T]) freeze() cow[T] {
	f := *c
	f.pages = append([]*page[T](nil), c.pages...)
	return f
}

// each calls f for the records of all pages that are there, until f gives false.
func (c *cow[T]) each(f func(int, *T) bool) {
	for k, p := range c.pages {
		if p == nil {
			continue
		}
		start := (c.first + k) * pageSize
		for i := range min(pageSize, c.n-start) {
			if !f(start+i, &p.recs[i]) {
				return
			}
		}
	}
}

// eachBack is each from the record before end to the first.
func (c *cow[T]) eachBack(end int, f func(int, *T) bool) {
	end = min(end, c.n)
	for k := min(len(c.pages), (end+pageSize-1)/pageSize-c.first) - 1; k >= 0; k-- {
		p := c.pages[k]
		if p == nil {
			continue
		}
		start := (c.first + k) * pageSize
		for i := min(pageSize, end-start) - 1; i >= 0; i-- {
			if !f(start+i, &p.recs[i]) {
				return
			}
		}
	}
}

// drop gives back the page of a record if all its records are zero by the given test, and with it its place in the table if
// no page stands before it: the table of an array that only grows at one end and empties at the other stays short. The last
// page stays, since the next record goes there.
func (c *cow[T]) drop(i int, zero func(*T) bool) {
	last := len(c.pages) - 1
	if k := i/pageSize - c.first; k < last && c.pages[k].empty(zero) {
		c.pages[k] = nil
	}
	for len(c.pages) > 1 && c.pages[0].empty(zero) {
		c.pages = c.pages[1:]
		c.first++
	}
}

func (p *page[T]) empty(zero func(*T) bool) bool {
	if p == nil {
		return true
	}
	for k := range p.recs {
		if !zero(&p.recs[k]) {
			return false
		}
	}
	return true
}
