// Package bell wakes whoever waits for a change. It knows neither what changed nor who waits.
package bell

import "sync"

// Bell tells any number of waiters that something changed. The zero value is ready. A waiter asks for Changed before it looks: what
// changes after the look closes the channel that it has.
type Bell struct {
	mu sync.Mutex
	c  chan struct{} // guarded by mu; closed at a ring, nil while nobody has asked since
}

// Changed is closed at the next Ring.
func (b *Bell) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

// Ring wakes all who wait.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}
