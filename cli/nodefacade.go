package cli

import (
	"context"
	"net/http"

	"lanjobs/node"
	"lanjobs/transport"
)

// nodes is what the commands need of package node. It is a field of world, so that tests bring nodes of their own.
type nodes struct {
	config func() node.Config // this user's node on this machine
	open   func(context.Context, node.Config) (liveNode, error)
	create func(node.Config, string) (*transport.InitView, error)
	join   func(ctx context.Context, cfg node.Config, peer, token string, worker bool) (cluster string, err error)

	restore     func(ctx context.Context, cfg node.Config, plain []byte, replace bool) (*transport.RestoreView, error)
	setAside    func(cfg node.Config) error
	checkBackup func(plain []byte) (*transport.RestoreView, error)
}

// liveNode is a started node.
type liveNode interface {
	Run(context.Context) error // until the context ends or it breaks
	API() http.Handler
	Stop(context.Context) error // a context that has ended: at once, and what it runs is killed
}

// packageNode is the real package.
func packageNode() nodes {
	return nodes{
		config: node.DefaultConfig,
		open:   func(ctx context.Context, cfg node.Config) (liveNode, error) { return node.Open(ctx, cfg) },
		create: node.CreateCluster,
		join:   node.JoinCluster,

		restore: node.RestoreBackup, setAside: node.SetDataAside, checkBackup: node.CheckBackup,
	}
}
