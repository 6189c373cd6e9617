package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport/memnet"
)

// The leader dies right after it has promoted b, and before c has heard of it: c takes b for a stand-by and would never vote for
// it, while b needs that vote. Two of three voters live and nobody leads until the dead one comes back.
func TestLeaderDiesAfterAPromotion(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		t.Run(fmt.Sprint("guarded ", guarded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, guarded, "a", "b", "c")
				defer l.close()
				l.bootstrap("a")
				l.start("a", "b", "c")
				a := l.leadBy("a")
				change := func(f raft.Future) {
					t.Helper()
					if err := waitChange(t.Context(), memnet.NewClock(), a.raft, f, 10*time.Second); err != nil {
						t.Fatal(err)
					}
				}
				for _, id := range []task.NodeID{"b", "c"} {
					change(a.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id), 0, 5*time.Second))
				}
				change(a.raft.AddVoter("c", "c", 0, 5*time.Second))
				if !l.level(5 * time.Second) {
					t.Fatal("not level")
				}
				l.net.Cut("a", "c")
				change(a.raft.AddVoter("b", "b", 0, 5*time.Second)) // a and b have it: it is committed
				a.crash()
				elected := until(30*time.Second, func() bool { return l.leads("a") != nil })
				if elected != guarded {
					t.Fatalf("a leader without a: %v, want %v", elected, guarded)
				}
				if !guarded {
					return
				}
				leader := l.leads("a")
				leader.mustApply("after")
				if leader.id != "b" {
					t.Errorf("%s leads, whose log was shorter", leader.id)
				}
			})
		})
	}
}
