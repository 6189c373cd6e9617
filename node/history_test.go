package node

import (
	"testing"

	"lanjobs/transport"
)

// TestWhatAMachineDoesAboutALaterHistory: no machine works on in an earlier history once it has heard that a later one is led, and
// only one that has just started, or that nobody leads, goes over by itself.
func TestWhatAMachineDoesAboutALaterHistory(t *testing.T) {
	const own, later = 2<<32 | 7, 3<<32 | 1
	for _, c := range []struct {
		generation         uint64
		leader             bool
		member, led, young bool
		want               historyStep
	}{
		{later, false, true, true, true, historyWait},
		{later, false, true, false, false, historyWait},
		{later, true, true, false, false, historyOver},
		{later, true, true, false, true, historyOver},
		{later, true, true, true, true, historyOver},
		{later, true, true, true, false, historyStop},
		{later, true, false, true, false, historyStop},
		{later, true, false, true, true, historyStop},
		{later, true, false, false, true, historyUnknown},
		{2<<32 | 9, true, true, false, true, historyStop}, // of two recoveries neither knows more than the other
		{2<<32 | 9, true, true, true, false, historyStop},
	} {
		r := &transport.HistoryReply{Cluster: transport.ClusterInfo{Generation: c.generation}, Member: c.member}
		if c.leader {
			r.Leader = "d"
		}
		if got := stepOf(own, r, c.led, c.young); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
