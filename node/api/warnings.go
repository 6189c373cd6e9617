package api

import (
	"fmt"

	"lanjobs/fsm"
)

// warnings say, before it happens, what would stop the cluster: one more voter that sleeps, or voters that may sleep at any time.
func (v *view) warnings() []string {
	e := v.voters
	if v.leader == "" || e.voters < 3 || e.lost() {
		return nil
	}
	spare := e.answering - e.needed()
	if spare == 0 {
		return []string{fmt.Sprintf("If one more voter sleeps or fails, nothing can be changed until one is back: wake %s, or see: lanjobs help lost-quorum", v.awayNames())}
	}
	var battery []string
	v.present(func(n *fsm.Node) {
		role := v.role(n)
		if seen, ok := v.seen(n.Info.ID); ok && seen.Load.Battery && (role == RoleVoter || role == RoleLeader) && !v.silent(n) {
			battery = append(battery, nodeName(n))
		}
	})
	if len(battery) <= spare {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d voters run on battery (%s): if more than %d of them sleep, nothing can be changed until one wakes. Plug them in, or: lanjobs node demote NODE",
		len(battery), e.voters, some(battery, maxNamed, ", "), spare)}
}
