package node

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// A backup knows nothing of what came after it: a token that somebody saw, a login on a stolen laptop, a machine that was sent
// away are all good again in its state. So a restore lets in less than the backup does:
//
//	tokens    all end: they are secrets with an unknown history, and a new one costs nothing
//	clients   end unless the person who restores keeps them: each logs in again
//	machines  may come back, as they are the cluster; not those that the person names, and not those that a survivor of the
//	          cluster knows to be removed
//
// It is done by the commands that remove them at any time, applied to the state before it becomes the first snapshot of the new
// history: there is no moment at which the restored cluster would let them in, and the audit log has each.

// RestoreHow is what the person who restores a backup says about it.
type RestoreHow struct {
	Replace     bool     // what the data folder holds is set aside; else it is refused
	KeepClients bool     // who had logged in by then may go on
	Without     []string // machines by name, clients by name or id, that are not let in any more
}

// withdraw takes out of a backup's state what is not to be let in again, as one entry after its last. gone are machines that
// survivors know to be removed. It gives the names of what was taken out, tokens apart.
func withdraw(state *fsm.State, how RestoreHow, gone []task.NodeID, wall int64) (names []string, events []task.Event, err error) {
	if err := allKnown(state, how.Without); err != nil {
		return nil, nil, err
	}
	entry, by := &fsm.Batch{Wall: wall}, owner()
	for _, t := range state.JoinTokens() {
		entry.Commands = append(entry.Commands, &fsm.RemoveToken{ID: t.ID, By: by})
	}
	for _, c := range state.Clients() {
		if !how.KeepClients || slices.Contains(how.Without, c.Name) || slices.Contains(how.Without, c.ID) {
			names = append(names, c.Name)
			entry.Commands = append(entry.Commands, &fsm.RemoveClient{ID: c.ID, By: by})
		}
	}
	for _, n := range state.Nodes() {
		if n.Gone == "" && (slices.Contains(how.Without, n.Info.Name) || slices.Contains(gone, n.Info.ID)) {
			names = append(names, n.Info.Name)
			entry.Commands = append(entry.Commands, &fsm.SetNode{Node: n.Info.ID, Action: fsm.NodeRemove, By: by, Reason: "the cluster was restored without it"})
		}
	}
	if len(entry.Commands) == 0 {
		return nil, nil, nil
	}
	results, events, err := state.Apply(max(state.Index, 1)+1, entry.Encode())
	for _, r := range results {
		if err == nil && r.Err != nil {
			err = r.Err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), events, err
}

// allKnown refuses a name that is none of the backup's: a slip in it would let in what it was to keep out.
func allKnown(state *fsm.State, names []string) error {
	known := append(membersOf(state), clientsOf(state)...)
	for _, name := range names {
		if slices.Contains(known, name) || state.Client(name) != nil {
			continue
		}
		hint := "It has: " + strings.Join(known, ", ")
		if near := task.Nearest(known, name); near != "" {
			hint = fmt.Sprintf("Did you mean %q? %s", near, hint)
		}
		return task.NewProblem(task.ErrNotFound, fmt.Sprintf("the backup has no machine and no client %q: nothing was changed.", name), hint)
	}
	return nil
}

func clientsOf(state *fsm.State) []string {
	names := []string{}
	for _, c := range state.Clients() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// goneHere are the machines that this node's ledger has as removed, for a restore that happens beside it.
func goneHere(s *fsm.State) (ids []task.NodeID) {
	for _, n := range s.Nodes() {
		if n.Gone != "" {
			ids = append(ids, n.Info.ID)
		}
	}
	return ids
}

// restoreView is what a backup lets in, or after withdraw still lets in.
func restoreView(head *transport.BackupHead, state *fsm.State) *transport.RestoreView {
	return &transport.RestoreView{BackupHead: *head, Jobs: state.Live(), Machines: membersOf(state), Clients: clientsOf(state), Tokens: len(state.JoinTokens())}
}
