package plan

// consistentHash gives the same work to the same machine as long as that is here, so that what it keeps on its disk is used
// again. The work is named by its item, or by the names of job and stage and the number of the shard, and belongs to the
// machine with the highest hash of the two (rendezvous hashing): when one of n machines goes only its share moves, evenly to
// the others, and one that comes takes 1/n of each. A shard waits for its machine while that is busy. Preferences do not count.
type consistentHash struct{}

func (consistentHash) owner(p *pick, f *fit) int {
	key := p.key()
	owner, highest := 0, uint64(0)
	for i := range f.seats {
		if h := mix(key ^ f.seats[i].hashed()); h > highest {
			owner, highest = i, h
		}
	}
	return owner
}

func (s consistentHash) choose(p *pick, f *fit) int { return ifRoom(f, s.owner(p, f)) }

// key is the hash of what a shard works on.
func (p *pick) key() uint64 {
	if item := p.job.Item(p.stage, p.shard); item != "" {
		return mix(hashText(offset, item))
	}
	if p.work == 0 {
		p.work = hashText(hashText(offset, p.job.Spec.Name+"\x00"), p.job.Spec.Stages[p.stage].Name)
	}
	return mix(p.work ^ mix(uint64(p.shard)+1))
}

// hashed is the hash of a machine's id.
func (m *member) hashed() uint64 {
	if m.hash == 0 {
		m.hash = hashText(offset, string(m.id))
	}
	return m.hash
}

// offset is where FNV-1a begins. The hash must be the same on every leader, so it is none of Go's own, which are seeded anew
// in every process.
const offset = 14695981039346656037

func hashText(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// mix spreads a value over 64 bits (the SplitMix64 finaliser): texts that differ in their last letter only lie far apart.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
