//go:build bench

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
	"net/http"
	"strings"
	"sync"
	"time"
)

func (b *bench) spec(text string) json.RawMessage {
	spec, faults := jobfile.Load("bench.yaml", []byte(text), jobfile.Options{})
	if len(faults) > 0 {
		b.t.Fatal(jobfile.Render("bench.yaml", faults))
	}
	data, err := json.Marshal(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

func (b *bench) submit(n *benchNode, id string, spec json.RawMessage) task.JobID {
	q, err := http.NewRequest(http.MethodPost, "http://node/v1/jobs", bytes.NewReader(spec))
	if err != nil {
		b.t.Fatal(err)
	}
	q.Header.Set("Content-Type", transport.ContentTypeSpec)
	q.Header.Set(transport.HeaderRequestID, id)
	resp, err := n.web.Do(q)
	if err != nil {
		b.t.Fatalf("submit: %v", err)
	}
	defer resp.Body.Close()
	var r task.SubmitReply
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || r.ID == "" {
		b.t.Fatalf("submit: %s %v", resp.Status, err)
	}
	return r.ID
}

// singleJobs is lives of one-shard jobs a second, with many clients at once.
func (b *bench) singleJobs(c *benchCluster, jobs int) float64 {
	n, spec := c.leader(), b.spec("name: single\ncommand: [x]\n")
	return b.load(n, jobs, 1, 256, func(from int) { b.submit(n, fmt.Sprintf("single-%d", from), spec) })
}

// manyJobs is the same with many jobs in each request.
func (b *bench) manyJobs(c *benchCluster, jobs int) float64 {
	const each = 500
	n, spec := c.leader(), b.spec("name: single\ncommand: [x]\n")
	return b.load(n, jobs, each, 8, func(from int) {
		var body bytes.Buffer
		for i := range each {
			fmt.Fprintf(&body, "{\"request_id\":\"many-%d\",\"spec\":%s}\n", from+i, spec)
		}
		q, err := http.NewRequest(http.MethodPost, "http://node/v1/jobs", &body)
		if err != nil {
			b.t.Error(err)
			return
		}
		q.Header.Set("Content-Type", transport.ContentTypeSpecs)
		resp, err := n.web.Do(q)
		if err != nil {
			b.t.Error(err)
			return
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if got := bytes.Count(answer, []byte(`"id":`)); err != nil || got != each {
			b.t.Errorf("%s: %d of %d jobs taken, %v%s", resp.Status, got, each, err, without(answer, `"id":`))
		}
	})
}

// load lets clients submit jobs, each some at a time, and is jobs a second until all are done.
func (b *bench) load(n *benchNode, jobs, each, clients int, submit func(from int)) float64 {
	var all sync.WaitGroup
	next := make(chan int)
	start := time.Now()
	for range clients {
		all.Go(func() {
			for from := range next {
				submit(from)
			}
		})
	}
	for from := 0; from < jobs; from += each {
		next <- from
	}
	close(next)
	all.Wait()
	b.until("all jobs done", 2*time.Minute, func() bool {
		for _, state := range []string{"pending", "running"} {
			var l task.List[task.JobView]
			if err := n.api.Get(context.Background(), "/v1/jobs?limit=1&state="+state, &l); err != nil || len(l.Items) > 0 {
				return false
			}
		}
		return true
	})
	return float64(jobs) / time.Since(start).Seconds()
}

// shards is lives of shards of one job a second.
func (b *bench) shards(c *benchCluster, shards int) float64 {
	n := c.leader()
	start := time.Now()
	id := b.submit(n, "shards", b.spec(fmt.Sprintf("name: shards\ncommand: [x]\nshards: %d\n", shards)))
	b.until("all shards done", 5*time.Minute, func() bool { return b.job(n, id).State.Final() })
	return float64(shards) / time.Since(start).Seconds()
}

func (b *bench) job(n *benchNode, id task.JobID) (v task.JobView) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = n.api.Get(ctx, "/v1/jobs/"+string(id), &v)
	return v
}

// benchSlots is how much a node may run at once: what is measured is lanjobs, not the wait for a slot.
const benchSlots = task.MaxSlots

// without gives the lines of an answer that lack a word.
func without(answer []byte, word string) (out string) {
	for line := range strings.Lines(string(answer)) {
		if !strings.Contains(line, word) {
			out += "\n" + line
		}
	}
	return out
}
