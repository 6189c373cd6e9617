package cli

import (
	"fmt"
	"slices"

	"lanjobs/task"
)

// news makes sentences of events: "segments/9 moved mini-2 → nas: lease ended unrenewed; resumes at checkpoint 3".
type news struct {
	many        bool                   // several jobs: their names are told too
	lost        map[shardKey]lostLease // what ended without success and has not been granted again
	checkpoints map[shardKey]uint64    // the last one saved
	sentences   []string
}

type shardKey struct {
	job   task.JobID
	stage string
	shard int
}

type lostLease struct{ node, reason string }

// newsLimit bounds the memory for a job with a million shards; older facts are forgotten.
const newsLimit = 10_000

func newNews() *news {
	return &news{lost: map[shardKey]lostLease{}, checkpoints: map[shardKey]uint64{}}
}

// take gives the new sentences.
func (n *news) take() []string {
	out := n.sentences
	n.sentences = nil
	return out
}

func (n *news) add(e task.Event) {
	if len(n.lost)+len(n.checkpoints) > newsLimit {
		clear(n.lost)
		clear(n.checkpoints)
	}
	switch e.Kind {
	case task.EventCheckpoint:
		for _, k := range shardsOf(e) {
			n.checkpoints[k] = e.Seq
		}
	case task.EventLeaseExpire, task.EventLeaseRelease:
		n.released(e)
	case task.EventLeaseGrant:
		n.granted(e)
	case task.EventShardState:
		if e.To == task.ShardFailed.String() {
			n.drop(n.endedOn(e, e.Shards, e.NodeName, n.lostReason(e)))
			n.sentences = append(n.sentences, fmt.Sprintf("%s dead: %s", n.name(e, e.Shards), oneLine(e.Reason)))
		}
	}
}

// name is what a person calls the shards of an event.
func (n *news) name(e task.Event, shards string) string {
	if n.many {
		return e.JobName + "/" + e.Stage + "/" + shards
	}
	return e.Stage + "/" + shards
}

// succeeded is how the release of an attempt reads that ended well.
var succeeded = task.Outcome{End: task.EndExited}.String()

func (n *news) released(e task.Event) {
	for _, k := range shardsOf(e) {
		if e.Reason == succeeded {
			delete(n.checkpoints, k)
		} else {
			n.lost[k] = lostLease{e.NodeName, e.Reason}
		}
	}
	if e.Reason != succeeded && e.Reason != string(task.EndCancelled) {
		n.sentences = append(n.sentences, n.endedOn(e, e.Shards, e.NodeName, e.Reason))
	}
}

func (n *news) endedOn(e task.Event, shards, node, reason string) string {
	return fmt.Sprintf("%s ended on %s: %s", n.name(e, shards), node, oneLine(reason))
}

func (n *news) granted(e task.Event) {
	for _, k := range shardsOf(e) {
		l, again := n.lost[k]
		if !again {
			continue
		}
		delete(n.lost, k)
		name := n.name(e, itoa(k.shard))
		text := fmt.Sprintf("%s again on %s", name, e.NodeName)
		if l.node != e.NodeName {
			text = fmt.Sprintf("%s moved %s → %s: %s", name, l.node, e.NodeName, oneLine(l.reason))
			// One sentence for a lease that ended and was granted within one look.
			n.drop(n.endedOn(e, itoa(k.shard), l.node, l.reason))
		}
		if seq := n.checkpoints[k]; seq > 0 {
			text += fmt.Sprintf("; resumes at checkpoint %d", seq)
		}
		n.sentences = append(n.sentences, text)
	}
}

// drop takes a sentence back that a fuller one replaces before anybody has read it.
func (n *news) drop(sentence string) {
	if i := slices.Index(n.sentences, sentence); i >= 0 {
		n.sentences = slices.Delete(n.sentences, i, i+1)
	}
}

// lostReason is how the last attempt of an event's shard ended.
func (n *news) lostReason(e task.Event) string {
	for _, k := range shardsOf(e) {
		if l, ok := n.lost[k]; ok {
			return l.reason
		}
	}
	return ""
}

// shardsOf names each shard of an event.
func shardsOf(e task.Event) []shardKey {
	ranges, err := task.ParseRanges(e.Shards)
	if err != nil {
		return nil
	}
	var out []shardKey
	for _, r := range ranges {
		for i := r.First; i <= r.Last && len(out) < task.MaxShards; i++ {
			out = append(out, shardKey{e.Job, e.Stage, i})
		}
	}
	return out
}
