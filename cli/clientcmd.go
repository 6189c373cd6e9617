package cli

import (
	"context"
	"net/url"

	"lanjobs/task"
	"lanjobs/transport"
)

func clientGroup() *group {
	return &group{name: "client", short: "people and programs that use the cluster from elsewhere", commands: []*command{
		{name: "ls", short: "list who has logged in", takes: takesNode | takesOutput | takesWatch, run: runClientLs},
		{name: "rm", operands: "CLIENT…", min: 1, max: -1, short: "shut clients out at once, by id or name", takes: takesNode, run: runClientRm},
	}}
}

func runClientLs(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	return c.showOrWatch(ctx, func(ctx context.Context) (answer, error) {
		var l task.List[transport.ClientView]
		if err := cl.get(ctx, "/v1/clients", nil, &l); err != nil {
			return answer{}, c.explainDoor(err)
		}
		a := answer{value: l, items: anys(l.Items), table: table{head: []string{"ID", "NAME", "ROLE", "SINCE", "LET IN BY"}}}
		for _, k := range l.Items {
			since := "-"
			if k.Created != nil {
				since = stamp(*k.Created, c.clock.Wall())
			}
			a.names = append(a.names, k.ID)
			a.table.rows = append(a.table.rows, cells(k.ID, k.Name, k.Role, since, orElse(k.By, "-")))
		}
		if len(l.Items) == 0 {
			a.foot = []string{"No clients. Let one in: lanjobs token create --role operator"}
		}
		return a, nil
	})
}

func runClientRm(ctx context.Context, c *call) error {
	cl, err := c.ask(ctx)
	if err != nil {
		return err
	}
	for _, ref := range c.args {
		k := &transport.ClientView{}
		if err := cl.delete(ctx, "/v1/clients/"+url.PathEscape(ref), nil, k); err != nil {
			return c.explainDoor(err)
		}
		if err := c.done(nil, nil, "%s (%s) is shut out", orElse(k.Name, ref), k.ID); err != nil {
			return err
		}
	}
	return nil
}
