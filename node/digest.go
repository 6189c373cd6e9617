package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Replicas that applied the same entries have the same state, byte by byte (I10). A disk that changed bits, or a fault of lanjobs,
// may make one part from the others without a word. So the leader compares digests with the other members now and then, while the
// cluster is not idle, and a difference is an alarm. Under the ledger's lock the state is only frozen; the rest is one walk over it.

const (
	digestEvery   = 5 * time.Minute
	digestTimeout = time.Minute
)

// digestAhead are how many entries before it is taken a digest is asked for: few where little happens, more where the others have
// passed the entry before they hear of it.
var digestAhead = []uint64{2, 64, 2048}

// digests is the one digest that is wanted of this member.
type digests struct {
	mu     sync.Mutex
	at     uint64 // the entry, 0 = none is wanted
	frozen *fsm.Snapshot
	index  uint64 // of frozen, or of the last digest
	digest string // the last that was taken
}

// want asks for the state after the first command at or behind an entry. Commands have the same places in every log. 0 is none: nobody
// waits for it any more, and what is frozen costs memory.
func (d *digests) want(index uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.frozen = index, nil
}

// passed is called under the ledger's lock after each entry.
func (d *digests) passed(s *fsm.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at != 0 && s.Index >= d.at {
		d.frozen, d.index, d.at = s.Snapshot(), s.Index, 0
	}
}

// take gives the digest of what was frozen, once; "" while nothing is.
func (d *digests) take() (digest string, index uint64) {
	d.mu.Lock()
	frozen := d.frozen
	d.frozen, index = nil, d.index
	d.mu.Unlock()
	if frozen == nil {
		return "", 0
	}
	h := sha256.New()
	_ = frozen.Write(h) // a hash takes every byte
	digest = hex.EncodeToString(h.Sum(nil))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.digest = digest
	return digest, index
}

// last is the digest taken last.
func (d *digests) last() (digest string, index uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.digest, d.index
}

// digestSoon waits for the digest that was wanted; "" if it does not come before ctx ends.
func (c *Core) digestSoon(ctx context.Context) (digest string, index uint64) {
	for {
		changed := c.ledger.Changed()
		if digest, index := c.ledger.digests.take(); digest != "" {
			return digest, index
		}
		select {
		case <-changed:
		case <-ctx.Done():
			c.ledger.digests.want(0)
			return "", 0
		}
	}
}

// serveDigest answers MethodDigest.
func (c *Core) serveDigest(ctx context.Context, _ task.NodeID, q *transport.DigestRequest) (*transport.DigestReply, error) {
	if q.Digest != "" {
		if own, index := c.ledger.digests.last(); index == q.Index && c.parts.Diverged != nil {
			c.parts.Diverged(index, own != q.Digest)
		}
		return &transport.DigestReply{}, nil
	}
	c.ledger.digests.want(q.Index)
	var applied uint64
	c.ledger.Read(func(s *fsm.State) { applied = s.Index })
	if applied >= q.Index {
		c.ledger.digests.want(0)
		return &transport.DigestReply{}, nil // too late for this one
	}
	ctx, cancel := transport.WithTimeout(ctx, c.parts.Clock, digestTimeout)
	defer cancel()
	digest, index := c.digestSoon(ctx)
	return &transport.DigestReply{Digest: digest, Index: index}, nil
}

// compareDigests compares while this node leads.
func (c *Core) compareDigests(ctx context.Context) {
	var last uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.parts.Clock.After(digestEvery):
		}
		var now uint64
		c.ledger.Read(func(s *fsm.State) { now = s.Index })
		if now == last {
			continue // idle: the disks sleep
		}
		last = now
		var others []task.NodeID
		for _, s := range c.Servers() {
			if id := task.NodeID(s.ID); id != c.parts.Self {
				others = append(others, id)
			}
		}
		for _, ahead := range digestAhead {
			if c.compareWith(ctx, others, ahead) || ctx.Err() != nil {
				break
			}
		}
	}
}

// compareWith asks others for their digest after the same entry, and tells each of them what it is here. It reports whether any
// could be compared.
func (c *Core) compareWith(ctx context.Context, others []task.NodeID, ahead uint64) (compared bool) {
	ctx, cancel := transport.WithTimeout(ctx, c.parts.Clock, digestTimeout)
	defer cancel()
	var index uint64
	c.ledger.Read(func(s *fsm.State) { index = s.Index + ahead })
	c.ledger.digests.want(index)
	replies := make([]transport.DigestReply, len(others))
	var asked sync.WaitGroup
	for i, id := range others {
		asked.Go(func() {
			_ = c.parts.Caller.Call(ctx, id, transport.MethodDigest, &transport.DigestRequest{Index: index}, &replies[i]) // no answer, no comparison
		})
	}
	digest, at := c.digestSoon(ctx)
	asked.Wait()
	for i, id := range others {
		r := replies[i]
		if digest == "" || r.Digest == "" || r.Index != at {
			continue
		}
		compared = true
		if r.Digest != digest {
			c.parts.Log.Error("the state of a member differs from this leader's", "node", id, "entry", at, "there", r.Digest, "here", digest)
		}
		_ = c.parts.Caller.Call(ctx, id, transport.MethodDigest, &transport.DigestRequest{Index: at, Digest: digest}, nil) // it is told again next time
	}
	return compared
}

// tellDiverged says that this machine's state is not the leader's, or takes it back.
func (m *machine) tellDiverged(index uint64, differs bool) {
	text := ""
	if differs {
		text = fmt.Sprintf("This machine's state differs from the leader's at entry %d: a disk is damaged, or lanjobs has a fault. Back up on the leader (lanjobs backup save), then have this machine fetch everything anew: lanjobs join MACHINE --replace. Please report it.", index)
	}
	if m.trouble.note(aboutState, text) && text != "" {
		m.log.Error(text)
	}
}
