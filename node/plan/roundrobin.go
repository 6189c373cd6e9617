package plan

// roundRobin gives shards to machines by turns: to the next one with room, in the order of their first registration, after the
// one that got the queue's last shard. Machines that meet more preferences go first.
type roundRobin struct{}

func (roundRobin) choose(p *pick, f *fit) int {
	first := 0
	for first < len(f.seats) && f.seats[first].at <= p.last {
		first++
	}
	best := -1
	for k := range f.seats {
		i := (first + k) % len(f.seats)
		if f.room(i) && (best < 0 || f.seats[i].prefers > f.seats[best].prefers) {
			best = i
		}
	}
	return best
}
