package transport

import (
	"slices"
	"sync"
)

// crowd bounds a kind of connections, in all and from one source. When it is full the oldest one goes, of the same source
// first: an honest handshake takes milliseconds, so the oldest is the one that only occupies its place (C47). To refuse the
// newest instead would let 200 idle connections lock everybody out.
type crowd struct {
	max, perSource int

	mu    sync.Mutex
	links []*link // oldest first
	from  map[*link]string
}

func newCrowd(limit, perSource int) *crowd {
	return &crowd{max: limit, perSource: perSource, from: map[*link]string{}}
}

// enter adds a connection and closes another one if there are too many.
func (c *crowd) enter(l *link, source string) {
	c.mu.Lock()
	c.links = append(c.links, l)
	c.from[l] = source
	victim := c.excess(source)
	c.mu.Unlock()
	if victim != nil {
		_ = victim.Close() // leaves by itself
	}
}

// excess gives the connection that has to go, if any; it is off the list then.
func (c *crowd) excess(source string) *link {
	same := 0
	for _, s := range c.from {
		if s == source {
			same++
		}
	}
	if same <= c.perSource && len(c.links) <= c.max {
		return nil
	}
	victim := c.links[0]
	if same > c.perSource {
		victim = c.links[slices.IndexFunc(c.links, func(l *link) bool { return c.from[l] == source })]
	}
	c.drop(victim)
	return victim
}

// leave takes a connection off the list, if it is there.
func (c *crowd) leave(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(l)
}

func (c *crowd) drop(l *link) {
	if i := slices.Index(c.links, l); i >= 0 {
		c.links = slices.Delete(c.links, i, i+1)
		delete(c.from, l)
	}
}

// closeAll closes everything.
func (c *crowd) closeAll() {
	c.mu.Lock()
	links := slices.Clone(c.links)
	c.mu.Unlock()
	for _, l := range links {
		_ = l.Close()
	}
}
