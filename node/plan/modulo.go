package plan

// modulo gives a shard to the machine whose place is the shard's number modulo the number of machines that fit and are here,
// in the order of their first registration. A shard waits for its machine while that is busy; when a machine goes or comes,
// all places are counted anew. Preferences do not count.
type modulo struct{}

func (modulo) owner(p *pick, f *fit) int { return p.shard % len(f.seats) }

func (s modulo) choose(p *pick, f *fit) int { return ifRoom(f, s.owner(p, f)) }
