package transport

import (
	"sync"

	"github.com/hashicorp/raft"
)

// raftPipeline is raft's pipeline with entries trimmed by bytes, and with a queue for the answers. Without the queue a leader
// that learns of a newer term from an answer stops reading answers while its next request waits for room: that goroutine
// then never ends, and neither does raft.Shutdown.
type raftPipeline struct {
	inner   raft.AppendPipeline
	answers chan raft.AppendFuture
	done    chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
}

func newRaftPipeline(inner raft.AppendPipeline) *raftPipeline {
	p := &raftPipeline{inner: inner, answers: make(chan raft.AppendFuture), done: make(chan struct{})}
	p.wg.Go(p.pass)
	return p
}

// pass keeps taking answers, whether anybody reads them or not. The queue stays short: nobody sends for long without reading.
func (p *raftPipeline) pass() {
	var queue []raft.AppendFuture
	for {
		var out chan<- raft.AppendFuture
		var next raft.AppendFuture
		if len(queue) > 0 {
			out, next = p.answers, queue[0]
		}
		select {
		case f := <-p.inner.Consumer():
			queue = append(queue, f)
		case out <- next:
			queue = queue[1:]
		case <-p.done:
			return
		}
	}
}

// AppendEntries sends a request.
func (p *raftPipeline) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	trimEntries(req)
	return p.inner.AppendEntries(req, resp)
}

// Consumer gives the answers in the order of the requests.
func (p *raftPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline.
func (p *raftPipeline) Close() error {
	err := p.inner.Close()
	p.once.Do(func() { close(p.done) })
	p.wg.Wait()
	return err
}
