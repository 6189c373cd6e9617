package fsm

import "lanjobs/task"

func (s *State) encodeHead(e *enc) {
	e.i64(int64(s.Clock))
	e.i64(int64(s.Led))
	e.i64(s.Wall)
	e.u64(s.Index)
	e.u64(s.Generation)
	e.str(string(s.Leader))
	e.u64(s.Term)
	e.u64(s.nextToken)
	e.rec(func(e *enc) {
		e.str(s.Cluster.ID)
		e.str(s.Cluster.Name)
		e.raw(s.Cluster.CACert)
		e.raw(s.Cluster.CAKey)
		e.raw(s.Cluster.GossipKey)
	})
}

func (s *State) decodeHead(d *dec) {
	s.Clock, s.Led, s.Wall, s.Index, s.Generation = task.Instant(d.i64()), task.Millis(d.i64()), d.i64(), d.u64(), d.u64()
	s.Leader, s.Term, s.nextToken = task.NodeID(d.str()), d.u64(), d.u64()
	d.rec(func(d *dec) {
		s.Cluster = Cluster{ID: d.str(), Name: d.str(), CACert: cloneNil(d.raw()), CAKey: cloneNil(d.raw()), GossipKey: cloneNil(d.raw())}
	})
	if s.Clock < 0 || s.Led < task.Millis(s.Clock) || s.Led > maxLed/2 || s.Generation > maxGeneration || s.nextToken > maxToken {
		d.fail()
	}
}

func (n *Node) encode(e *enc) {
	encInfo(e, n.Info)
	e.u64(n.Incarnation)
	e.bool(n.Online)
	e.bool(n.Draining)
	e.i64(int64(n.DrainUntil))
	e.str(string(n.Gone))
	list(e, n.Extra, encKV)
	e.bool(n.WorkerOnly)
	e.i64(n.Since)
	e.str(n.Reason)
	e.str(n.Admitted)
	if e.level > 1 {
		e.raw(n.Key)
	}
	if e.level > 2 {
		e.rec(n.Care.encode)
	}
}

func (n *Node) decode(d *dec) {
	*n = Node{Info: decInfo(d), Incarnation: d.u64(), Online: d.bool(), Draining: d.bool(), DrainUntil: task.Instant(d.i64()),
		Gone: NodeAction(d.str()), Extra: decKVs(d), WorkerOnly: d.bool(), Since: d.i64(), Reason: d.str(), Admitted: d.str()}
	if d.level > 1 {
		n.Key = cloneNil(d.raw())
	}
	if d.level > 2 {
		d.rec(n.Care.decode)
	}
}

func (t *JoinToken) encode(e *enc) {
	e.str(t.ID)
	e.raw(t.Hash)
	e.i64(int64(t.Until))
	e.num(t.Uses)
	e.bool(t.Worker)
	e.str(t.By)
	if e.level > 2 {
		e.str(string(t.Role))
	}
}

func (t *JoinToken) decode(d *dec) {
	*t = JoinToken{ID: d.str(), Hash: cloneNil(d.raw()), Until: task.Millis(d.i64()), Uses: d.num(), Worker: d.bool(), By: d.str()}
	if d.level > 2 {
		t.Role = Role(d.str())
	}
}

// cloneNil copies, and gives nil for nothing.
func cloneNil(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}
