package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"lanjobs/task"
	"lanjobs/transport/memnet"
)

// fakeLeading is a leader of a, b, c and the non-voter d that counts what it is asked.
type fakeLeading struct {
	fakeLead
	asked []raft.ServerID
	err   error
}

func (f *fakeLeading) LastIndex() uint64 { return 100 }

func (f *fakeLeading) GetConfiguration() raft.ConfigurationFuture { return fakeConfiguration{} }

func (f *fakeLeading) LeadershipTransferToServer(id raft.ServerID, addr raft.ServerAddress) raft.Future {
	f.asked = append(f.asked, id)
	return answer{err: f.err}
}

type fakeConfiguration struct{ answer }

func (fakeConfiguration) Index() uint64 { return 1 }
func (fakeConfiguration) Configuration() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{
		{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d", Suffrage: raft.Nonvoter},
	}}
}

func TestTransferAsksOnlyWhoIsReady(t *testing.T) {
	hang := func(ctx context.Context) (uint64, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	for _, c := range []struct {
		name  string
		ready map[task.NodeID]func(context.Context) (uint64, error)
		want  raft.ServerID // "" = nobody
	}{
		{"all are", map[task.NodeID]func(context.Context) (uint64, error){
			"b": func(context.Context) (uint64, error) { return 100, nil },
			"c": func(context.Context) (uint64, error) { time.Sleep(time.Millisecond); return 100, nil },
		}, "b"},
		{"one sleeps", map[task.NodeID]func(context.Context) (uint64, error){
			"b": hang,
			"c": func(context.Context) (uint64, error) { return 101, nil },
		}, "c"},
		{"one is behind, the other answers too late", map[task.NodeID]func(context.Context) (uint64, error){
			"b": func(context.Context) (uint64, error) { return 99, nil },
			"c": func(context.Context) (uint64, error) { time.Sleep(1500 * time.Millisecond); return 100, nil },
		}, ""},
		{"nobody answers", map[task.NodeID]func(context.Context) (uint64, error){"b": hang, "c": hang}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeLeading{fakeLead: fakeLead{term: 5, leads: true}}
				transfer := &Transfer{Self: "a", Raft: f, Clock: memnet.NewClock(),
					Ready: func(ctx context.Context, v task.NodeID) (uint64, error) { return c.ready[v](ctx) }}
				start := time.Now()
				err := transfer.Do(t.Context(), "")
				if c.want == "" && (!errors.Is(err, ErrNoSuccessor) || len(f.asked) > 0) || time.Since(start) > 4*time.Second {
					t.Errorf("%v, asked %v after %s", err, f.asked, time.Since(start))
				}
				if c.want != "" && (err != nil || len(f.asked) != 1 || f.asked[0] != c.want) {
					t.Errorf("%v, asked %v, not %s", err, f.asked, c.want)
				}
				time.Sleep(2 * time.Second) // late answers
			})
		})
	}
}

func TestTransferOncePerTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeLeading{fakeLead: fakeLead{term: 5, leads: true}, err: errors.New("leadership transfer timeout")}
		transfer := &Transfer{Self: "a", Raft: f, Clock: memnet.NewClock(),
			Ready: func(context.Context, task.NodeID) (uint64, error) { return 100, nil }}
		if err := transfer.Do(t.Context(), ""); !errors.Is(err, f.err) {
			t.Errorf("%v", err)
		}
		if err := transfer.Do(t.Context(), ""); !errors.Is(err, ErrTransferTried) || len(f.asked) != 1 {
			t.Errorf("%v, asked %v", err, f.asked)
		}
		f.term, f.err = 6, nil
		if err := transfer.Do(t.Context(), ""); err != nil || len(f.asked) != 2 {
			t.Errorf("in the next term: %v, asked %v", err, f.asked)
		}
		f.leads = false
		if err := transfer.Do(t.Context(), ""); !errors.Is(err, ErrNotLeading) {
			t.Errorf("%v", err)
		}
	})
}
