package cli

import (
	"context"
	"net/http"

	"lanjobs/node"
	"lanjobs/task"
	"lanjobs/transport"
)

// nodes is what the commands need of package node. It is a field of world, so that tests bring nodes of their own.
type nodes struct {
	config func() node.Config // this user's node on this machine
	open   func(context.Context, node.Config) (liveNode, error)
	create func(node.Config, string) (*transport.InitView, error)
	check  func(context.Context, node.Config) *task.DoctorView // this machine, without a node
	fix    func(ctx context.Context, cfg node.Config, goos string, port int, found []task.Finding) []string
	join   func(ctx context.Context, cfg node.Config, peer, token string, worker bool) (cluster string, err error)
	find   func(context.Context, node.Config) ([]transport.Found, error)
	pair   func(ctx context.Context, cfg node.Config, peer string, worker bool, talk node.PairTalk) (admission, error)

	restore     func(ctx context.Context, cfg node.Config, plain []byte, how node.RestoreHow) (*transport.RestoreView, error)
	setAside    func(cfg node.Config) error
	checkBackup func(plain []byte) (*transport.RestoreView, error)
}

// liveNode is a started node.
type liveNode interface {
	Run(context.Context) error // until the context ends or it breaks
	API() http.Handler
	Stop(context.Context) error // a context that has ended: at once, and what it runs is killed
}

// admission is a machine that was let in by its code; nothing has been changed here yet.
type admission struct {
	by   string
	join func(context.Context) (cluster string, err error)
}

// packageNode is the real package.
func packageNode() nodes {
	return nodes{
		config: node.DefaultConfig,
		open:   func(ctx context.Context, cfg node.Config) (liveNode, error) { return node.Open(ctx, cfg) },
		create: node.CreateCluster,
		check:  node.CheckHere,
		fix:    node.FixHere,
		join:   node.JoinCluster,
		find:   node.FindClusters,
		pair: func(ctx context.Context, cfg node.Config, peer string, worker bool, talk node.PairTalk) (admission, error) {
			a, err := node.PairWithCluster(ctx, cfg, peer, worker, talk)
			if err != nil {
				return admission{}, err
			}
			return admission{by: a.By, join: a.Join}, nil
		},

		restore: node.RestoreBackup, setAside: node.SetDataAside, checkBackup: node.CheckBackup,
	}
}
