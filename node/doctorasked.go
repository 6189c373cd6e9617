package node

import (
	"context"
	"encoding/json"
	"net/http"

	"lanjobs/fsm"
	"lanjobs/node/api"
	"lanjobs/node/doctor"
	"lanjobs/task"
	"lanjobs/transport"
)

// askedMembers are the machines of the cluster as the leader lists them, for a machine that keeps no copy of the log; nil for one that
// has its own, and where no leader answers.
func (p peers) askedMembers(ctx context.Context) []task.NodeView {
	if p.m.wire == nil || p.m.core.HasCopy() {
		return nil
	}
	ctx, cancel := transport.WithTimeout(ctx, p.m.clock, peerTimeout)
	defer cancel()
	r, err := p.Forward(ctx, &transport.APIRequest{HTTPMethod: http.MethodGet, Path: "/v1/nodes", Hops: 1, By: "doctor of " + p.m.identity.Name, Role: string(fsm.RoleViewer)})
	if err != nil || r.Status != http.StatusOK {
		return nil
	}
	var l task.List[task.NodeView]
	if json.Unmarshal(r.Body, &l) != nil {
		return nil
	}
	return l.Items
}

// addAsked puts what the leader has told into the facts of a machine that keeps no copy.
func (m *machine) addAsked(n *doctor.Node, asked []task.NodeView) {
	if len(asked) == 0 {
		return
	}
	n.Members, n.Voters = len(asked), nil
	for _, v := range asked {
		if v.Role == string(api.RoleVoter) || v.Role == string(api.RoleLeader) {
			n.Voters = append(n.Voters, doctor.Voter{Name: v.Name, Answers: m.wire.away(v.ID, m.clock.Awake()) == 0})
		}
	}
}
