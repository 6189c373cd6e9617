package fsm

import "math/bits"

// bitset is the set of ready shards of a stage. In a stage with weights a shard's bit stands at its rank, so that the bits are
// in the order of grants.
type bitset struct {
	words []uint64
	n     int
	low   int // no bit is set in words below it
	ranks *ranks
}

func newBitset(n int, r *ranks) *bitset { return &bitset{words: make([]uint64, (n+63)/64), ranks: r} }

// full sets the first n bits.
func (b *bitset) full(n int) {
	for i := range b.words {
		b.words[i] = ^uint64(0)
	}
	if r := n % 64; r != 0 {
		b.words[len(b.words)-1] = 1<<r - 1
	}
	b.n, b.low = n, 0
}

// grow makes room for n shards.
func (b *bitset) grow(n int) {
	for len(b.words) < (n+63)/64 {
		b.words = append(b.words, 0)
	}
}

func (b *bitset) has(shard int) bool {
	i := b.ranks.of(shard)
	return b.words[i/64]&(1<<(i%64)) != 0
}

func (b *bitset) set(shard int) {
	if !b.has(shard) {
		i := b.ranks.of(shard)
		b.words[i/64] |= 1 << (i % 64)
		b.n++
		b.low = min(b.low, i/64)
	}
}

func (b *bitset) clear(shard int) {
	if b.has(shard) {
		i := b.ranks.of(shard)
		b.words[i/64] &^= 1 << (i % 64)
		b.n--
	}
	if b.n == 0 {
		b.low = len(b.words)
		return
	}
	for b.words[b.low] == 0 {
		b.low++
	}
}

// bit is the first set bit from one on, -1 if none.
func (b *bitset) bit(from int) int {
	if b.n == 0 {
		return -1
	}
	from = max(from, b.low*64)
	for w := from / 64; w < len(b.words); w++ {
		word := b.words[w]
		if w == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// next is the lowest shard in the set from a number on, -1 if none.
func (b *bitset) next(from int) int {
	if b.ranks == nil {
		return b.bit(from)
	}
	for k := max(from, 0); b.n > 0 && k < len(b.words)*64; k++ {
		if b.has(k) {
			return k
		}
	}
	return -1
}

// each calls f for each shard in the set, in the order of grants, until f gives false.
func (b *bitset) each(f func(shard int) bool) {
	for i := b.bit(0); i >= 0; i = b.bit(i + 1) {
		if !f(b.ranks.at(i)) {
			return
		}
	}
}

// ranks is the order in which a stage's shards are granted, if that is not the order of their numbers: the heavier first (R35).
// Shards that came later, by a split, stand behind them.
type ranks struct {
	rank  []int32 // of a shard
	shard []int32 // of a rank
}

func (r *ranks) of(shard int) int {
	if r == nil || shard >= len(r.rank) {
		return shard
	}
	return int(r.rank[shard])
}

func (r *ranks) at(rank int) int {
	if r == nil || rank >= len(r.shard) {
		return rank
	}
	return int(r.shard[rank])
}
