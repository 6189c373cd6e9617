package fsm

// pageSize is how many records share a page: small enough that a clone after a snapshot is cheap, large enough that the
// page table of a million shards is a few thousand pointers.
const pageSize = 256

// page belongs to the epoch in which it was made; a later epoch clones it before writing.
type page[T any] struct {
	epoch uint64
	recs  [pageSize]T
}

// cow is a growable array in copy-on-write pages.
type cow[T any] struct {
	pages []*page[T]
	n     int
}

func newCow[T any](n int, epoch uint64) cow[T] {
	c := cow[T]{n: n, pages: make([]*page[T], (n+pageSize-1)/pageSize)}
	for i := range c.pages {
		c.pages[i] = &page[T]{epoch: epoch}
	}
	return c
}

// sparse is an array of n zero records that takes no pages until they are written.
func sparse[T any](n int) cow[T] {
	return cow[T]{n: n, pages: make([]*page[T], (n+pageSize-1)/pageSize)}
}

// at is for reading only.
func (c *cow[T]) at(i int) *T {
	if p := c.pages[i/pageSize]; p != nil {
		return &p.recs[i%pageSize]
	}
	return new(T)
}

// mut is for writing within the epoch.
func (c *cow[T]) mut(i int, epoch uint64) *T {
	p := c.pages[i/pageSize]
	if p == nil || p.epoch != epoch {
		clone := page[T]{}
		if p != nil {
			clone = *p
		}
		clone.epoch = epoch
		p = &clone
		c.pages[i/pageSize] = p
	}
	return &p.recs[i%pageSize]
}

func (c *cow[T]) push(v T, epoch uint64) {
	if c.n == len(c.pages)*pageSize {
		c.pages = append(c.pages, &page[T]{epoch: epoch})
	}
	*c.mut(c.n, epoch) = v
	c.n++
}

// freeze is a copy that later writes in a higher epoch do not touch.
func (c *cow[T]) freeze() cow[T] {
	return cow[T]{pages: append([]*page[T](nil), c.pages...), n: c.n}
}

// drop gives back the page of a record if every record in it is zero, by the given test.
func (c *cow[T]) drop(i int, zero func(*T) bool) {
	p := c.pages[i/pageSize]
	if p == nil || i/pageSize == len(c.pages)-1 {
		return
	}
	for k := range p.recs {
		if !zero(&p.recs[k]) {
			return
		}
	}
	c.pages[i/pageSize] = nil
}
