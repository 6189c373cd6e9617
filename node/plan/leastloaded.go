package plan

// leastLoaded gives a shard to the machine that has given away the least of its slots. Each preference that a machine meets
// counts as much as a whole empty machine, so a preferred one is taken as long as it has room.
type leastLoaded struct{}

func (leastLoaded) choose(_ *pick, f *fit) int {
	best, least := -1, 0.0
	for i := range f.seats {
		m := &f.seats[i]
		if m.free <= 0 || f.need.big+m.claimed.big > 0 && !m.enough(&f.need) { // room, written out: it runs for each shard and machine
			continue
		}
		if load := m.full - m.prefers; best < 0 || load < least {
			best, least = i, load
		}
	}
	return best
}
