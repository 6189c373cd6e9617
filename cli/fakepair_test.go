package cli

import (
	"encoding/json"
	"net/http"

	"lanjobs/task"
	"lanjobs/transport"
)

// pairs answers for the machines that wait; the last one has the code K7QF-2M9X and is a member as soon as it was approved.
func (f *fakeAPI) pairs(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/pairings", f.locked(func(*http.Request) any { return list("PairingList", f.view.Index, f.waiting) }))
	mux.HandleFunc("POST /v1/pairings", f.locked(func(r *http.Request) any {
		var b transport.PairCodeBody
		if json.NewDecoder(r.Body).Decode(&b) != nil || b.Code != "K7QF-2M9X" || len(f.waiting) == 0 {
			return task.NewProblem(task.ErrNotAllowed, "no waiting machine has the code "+b.Code+".", "Waiting now: pc-win (192.168.1.23), 20s.")
		}
		v := f.waiting[len(f.waiting)-1]
		v.ID = "p1"
		return v
	}))
	mux.HandleFunc("POST /v1/pairings/p1/approve", f.locked(func(r *http.Request) any {
		var b transport.PairDecision
		if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
			return task.NewProblem(task.ErrInvalid, err.Error(), "")
		}
		f.approved = append(f.approved, b)
		v := f.waiting[len(f.waiting)-1]
		if b.Role != "" {
			v.Role = b.Role
			return v
		}
		f.view.Nodes = append(f.view.Nodes, task.NodeView{ID: v.Node, Name: v.Name, Role: "worker", State: "silent"})
		return v
	}))
	mux.HandleFunc("DELETE /v1/pairings/p1", f.locked(func(*http.Request) any { f.refused++; return struct{}{} }))
}
