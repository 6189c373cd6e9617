package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

const pathWho = "/v1/whoami"

func clientView(k *fsm.Client) transport.ClientView {
	created := time.UnixMilli(k.Created).UTC()
	return transport.ClientView{ID: k.ID, Name: k.Name, Role: string(k.Role), By: k.By, Created: &created}
}

// listClients answers GET /v1/clients.
func (a *API) listClients(_ context.Context, q *request) (*reply, error) {
	out := task.List[transport.ClientView]{Kind: "ClientList", Items: []transport.ClientView{}}
	a.look(q, func(v *view) {
		out.Index = v.Index
		for _, k := range v.Clients() {
			out.Items = append(out.Items, clientView(k))
		}
	})
	return ok(out)
}

// removeClient answers DELETE /v1/clients/{ref}. From the moment that it is applied on a member, nothing that the client asks there
// is answered, and its open streams are cut.
func (a *API) removeClient(ctx context.Context, q *request) (*reply, error) {
	var found *fsm.Client
	var err error
	a.look(q, func(v *view) { found, err = findClient(v.Clients(), q.value("ref")) })
	if err != nil {
		return nil, err
	}
	return a.dropClient(ctx, q, found)
}

// removeSelf answers DELETE /v1/clients/self.
func (a *API) removeSelf(ctx context.Context, q *request) (*reply, error) {
	var found *fsm.Client
	a.look(q, func(v *view) { found = v.Client(q.caller.Client) })
	if found == nil {
		return nil, task.NewProblem(task.ErrConflict, "you are the owner of a machine here, and no client.", "All clients: lanjobs client ls")
	}
	return a.dropClient(ctx, q, found)
}

func (a *API) dropClient(ctx context.Context, q *request, k *fsm.Client) (*reply, error) {
	if _, err := a.propose(ctx, &fsm.RemoveClient{ID: k.ID, By: q.by}); err != nil {
		return nil, err
	}
	return ok(clientView(k))
}

// findClient reads a reference: an id, or a name that only one has.
func findClient(all []*fsm.Client, ref string) (*fsm.Client, error) {
	var named []*fsm.Client
	var names, ids []string
	for _, k := range all {
		names = append(names, k.Name)
		switch {
		case k.ID == ref:
			return k, nil
		case k.Name == ref:
			named, ids = append(named, k), append(ids, k.ID)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		hint := "All clients: lanjobs client ls"
		if near := task.Nearest(names, ref); near != "" {
			hint = fmt.Sprintf("Did you mean %q? %s", near, hint)
		}
		return nil, task.NewProblem(task.ErrNotFound, "no client "+shown(ref)+".", hint)
	}
	return nil, invalid(shown(ref)+" is more than one client: "+strings.Join(ids, ", "), "write the id")
}

// whoAmI answers GET /v1/whoami.
func (a *API) whoAmI(_ context.Context, q *request) (*reply, error) {
	out := transport.WhoView{By: q.by, Role: string(q.caller.Role), Client: q.caller.Client}
	a.look(q, func(v *view) { out.Cluster = v.Cluster.Name })
	return ok(out)
}
