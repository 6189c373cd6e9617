//go:build bench

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

// TestRatios prints the table of `make bench`: what lanjobs reaches, against reference loops of the same run on the same disk.
// It fails only if something cannot be measured, never for a figure.
func TestRatios(t *testing.T) {
	b := newBench(t)
	commits := b.bareCommits()
	fmt.Printf("reference: %.0f bare bbolt commits/s, %.0f bare fork-exec-waits/s on %d processors\n", commits, b.bareExecs(), runtime.NumCPU())
	fmt.Printf("%-62s %12s %12s   %s\n", "what", "reached", "to reach", "limited by")
	row := func(what, reached, want, by string) { fmt.Printf("%-62s %12s %12s   %s\n", what, reached, want, by) }

	for _, part := range []struct {
		name string
		run  func()
	}{
		{"jobs", func() {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			rate, cost := three.cost(20_000, func() float64 { return b.singleJobs(three, 20_000) })
			row("lives of single no-op jobs per bare bbolt commit, one a request", ratio(rate/commits), "", "HTTP: "+cost+" of processors per job, in all three nodes")
		}},
		{"bulk", func() {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			rate, cost := three.cost(60_000, func() float64 { return b.manyJobs(three, 60_000) })
			row("lives of single no-op jobs per bare bbolt commit, 500 a request", ratio(rate/commits), "8", "processors: "+cost+" of them per job, in all three nodes")
		}},
		{"shards", func() {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			rate, cost := three.cost(200_000, func() float64 { return b.shards(three, 200_000) })
			row("lives of no-op shards of a sharded job per bare bbolt commit", ratio(rate/commits), "30", "processors: "+cost+" of them per shard, in all three nodes")
		}},
		{"leaders", func() {
			three := b.cluster(benchSlots, true)
			defer three.stop()
			grant, hand := b.failovers(three, 10)
			row("next grant after SIGKILL of the leader, median of 10", ms(grant), "1500 ms", "election time-out 500 ms, twice")
			row("planned hand-over of leadership, to the next grant", ms(hand), "100 ms", "workers' next polls")
		}},
		{"idle", func() {
			real := b.cluster(runtime.NumCPU(), false)
			defer real.stop()
			row("submit to first line of the task, idle cluster, in commits", ratio(b.firstLine(real, 20).Seconds()*commits), "20", "submit, grant, start of a process")
			cpu, mem, wrote := b.idle(real, 20*time.Second)
			row("idle three-node cluster: log entries in 20 s", strconv.Itoa(wrote), "0", "")
			row("idle three-node cluster: leader's share of a processor", fmt.Sprintf("%.1f %%", cpu*100), "4 %", "heartbeats and pings")
			row("idle three-node cluster: leader's memory", fmt.Sprintf("%d MB", mem), "40 MB", "")
		}},
		{"skew", func() {
			real := b.cluster(4, false)
			defer real.stop()
			plain, split := b.skewed(real, false), b.skewed(real, true)
			row("a skewed range on three nodes: time without splitting, over with", ratio(plain.Seconds()/split.Seconds()), "1.7", "half of the rest at each split")
		}},
		{"commands", func() {
			one := b.alone()
			defer one.stop()
			row("real commands on one node, against fork-exec-wait", fmt.Sprintf("%.0f %%", 100*b.commands(one, 2000)/b.bareExecs()), "50 %", "guard, logs, records of each attempt")
		}},
	} {
		if only := os.Getenv("LANJOBS_BENCH"); only == "" || strings.Contains(only, part.name) {
			part.run()
		}
	}
}

func ratio(v float64) string    { return fmt.Sprintf("%.1f", v) }
func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

type bench struct {
	t        *testing.T
	dir, exe string
	port     int
}

func newBench(t *testing.T) *bench {
	dir, err := os.MkdirTemp("", "lj")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	b := &bench{t: t, dir: dir, exe: filepath.Join(dir, "lanjobs"), port: 17420}
	build := exec.Command("go", "build", "-o", b.exe, "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return b
}

// bareCommits is how many synced bbolt transactions a second this disk takes, one after the other.
func (b *bench) bareCommits() float64 {
	db, err := bbolt.Open(filepath.Join(b.dir, "bare.db"), 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	n, start := 0, time.Now()
	for ; time.Since(start) < 2*time.Second; n++ {
		err := db.Update(func(tx *bbolt.Tx) error {
			k, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return k.Put([]byte(strconv.Itoa(n)), make([]byte, 100))
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return float64(n) / time.Since(start).Seconds()
}

// bareExecs runs /bin/true as often as it can, one loop per processor.
func (b *bench) bareExecs() float64 {
	const each = 500
	var loops sync.WaitGroup
	start := time.Now()
	for range runtime.NumCPU() {
		loops.Go(func() {
			for range each {
				if err := exec.Command("/bin/true").Run(); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	loops.Wait()
	return each * float64(runtime.NumCPU()) / time.Since(start).Seconds()
}

// benchNode is a node as a process.
type benchNode struct {
	b    *bench
	dir  string
	args []string
	cmd  *exec.Cmd
	api  *transport.APIClient
	web  *http.Client
}

func (n *benchNode) start() {
	n.cmd = exec.Command(n.b.exe, append([]string{"serve", "--data-dir", n.dir}, n.args...)...)
	log, err := os.OpenFile(n.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.b.t.Fatal(err)
	}
	n.cmd.Stderr = log
	if err := n.cmd.Start(); err != nil {
		n.b.t.Fatal(err)
	}
	door := transport.SocketDoor(transport.SocketPath(n.dir))
	if d, ok := door.(*http.Transport); ok {
		d.MaxIdleConnsPerHost = 512 // as many as there are clients
	}
	n.api, n.web = transport.NewAPIClient(door), &http.Client{Transport: door}
	n.b.until("an answer", 30*time.Second, func() bool { v, err := n.status(); return err == nil && v.Leader != "" })
}

func (n *benchNode) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s); _ = n.cmd.Wait() }

func (n *benchNode) status() (v task.ClusterView, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = n.api.Get(ctx, "/v1/status", &v)
	return v, err
}

type benchCluster struct {
	b     *bench
	nodes []*benchNode
}

func (c *benchCluster) stop() {
	for _, n := range c.nodes {
		n.signal(syscall.SIGKILL)
	}
}

func (b *bench) run(args ...string) string {
	out, err := exec.Command(b.exe, args...).Output()
	if err != nil {
		b.t.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) until(what string, limit time.Duration, ok func() bool) {
	b.t.Helper()
	pause := min(2*time.Millisecond, limit)
	if limit > time.Minute {
		pause = 25 * time.Millisecond // a long load: asking must not be part of it
	}
	for end := time.Now().Add(limit); !ok(); time.Sleep(pause) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: not within %s", what, limit)
		}
	}
}

// cluster starts three voters as processes of their own.
func (b *bench) cluster(slots int, noop bool) *benchCluster {
	c := &benchCluster{b: b}
	b.port++
	flags := []string{"--slots", strconv.Itoa(slots)}
	if noop {
		flags = append(flags, "--noop-runner")
	}
	for i := range 3 {
		n := &benchNode{b: b, dir: filepath.Join(b.dir, fmt.Sprintf("%d%c", b.port, 'a'+i)), args: flags}
		name, listen := fmt.Sprintf("n%d", i+1), fmt.Sprintf("127.0.0.%d:%d", i+1, b.port)
		if i == 0 {
			c.nodes = append(c.nodes, n)
			b.run("init", "--name", "bench", "--node-name", name, "--listen", listen, "--data-dir", n.dir)
		} else {
			token := filepath.Join(b.dir, "token")
			if err := os.WriteFile(token, []byte(b.run("token", "create", "-q", "--data-dir", c.nodes[0].dir)), 0o600); err != nil {
				b.t.Fatal(err)
			}
			b.run("join", fmt.Sprintf("127.0.0.1:%d", b.port), "--token-file", token, "--node-name", name, "--listen", listen, "--data-dir", n.dir)
			c.nodes = append(c.nodes, n)
		}
		b.endBackground(n.dir)
		n.start()
	}
	b.t.Cleanup(c.stop)
	b.until("three voters", time.Minute, func() bool { return c.healthy() })
	return c
}

func (c *benchCluster) healthy() bool {
	v, err := c.nodes[0].status()
	if err != nil || v.Voters != 3 || v.Leader == "" {
		return false
	}
	for _, n := range v.Nodes {
		if n.State != "ready" {
			return false
		}
	}
	return len(v.Nodes) == 3
}

// clear lets machines have work again that have been killed three times in a row.
func (c *benchCluster) clear() {
	v, err := c.nodes[0].status()
	if err != nil {
		return
	}
	for _, n := range v.Nodes {
		if n.State == "unstable" {
			_ = exec.Command(c.b.exe, "node", "clear", n.Name, "--data-dir", c.nodes[0].dir).Run()
		}
	}
}

// endBackground ends the node that init or join left in the background; it is started again with the flags of this bench.
func (b *bench) endBackground(dir string) {
	out, err := exec.Command("pgrep", "-f", "serve --data-dir "+dir).Output()
	if err != nil {
		b.t.Fatalf("no background node of %s: %v", dir, err)
	}
	for _, word := range strings.Fields(string(out)) {
		pid, _ := strconv.Atoi(word)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		b.until("its end", 10*time.Second, func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
	}
}

func zombie(pid int) bool {
	s, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(s), ") Z ")
}

func (b *bench) alone() *benchCluster {
	c := &benchCluster{b: b}
	n := &benchNode{b: b, dir: filepath.Join(b.dir, "alone"), args: []string{"--slots", strconv.Itoa(runtime.NumCPU())}}
	c.nodes = append(c.nodes, n)
	n.start()
	b.t.Cleanup(c.stop)
	b.until("a node", 20*time.Second, func() bool { v, err := n.status(); return err == nil && v.Leader != "" })
	return c
}

// leader gives the node that leads.
func (c *benchCluster) leader() *benchNode {
	var found *benchNode
	c.b.until("a leader", 20*time.Second, func() bool {
		for _, n := range c.nodes {
			if v, err := n.status(); err == nil && v.Leader != "" && v.Leader == v.Self {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

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

// failovers kills the leader while shards are granted all the time, and measures until the next ones are done; then once
// more with a planned end.
func (b *bench) failovers(c *benchCluster, rounds int) (killed, planned time.Duration) {
	id := b.submit(c.leader(), "long", b.spec("name: long\ncommand: [x]\nshards: 1000000\nparallelism: 2\n"))
	gap := func(s syscall.Signal) time.Duration {
		l := c.leader()
		others := slices.DeleteFunc(slices.Clone(c.nodes), func(n *benchNode) bool { return n == l })
		before := b.job(l, id).Shards.Succeeded
		start := time.Now()
		_ = l.cmd.Process.Signal(s)
		b.until("the next grant", 30*time.Second, func() bool {
			for _, n := range others {
				v, err := n.status()
				if err == nil && v.Leader != "" && v.Leader == v.Self && b.job(n, id).Shards.Succeeded > before+4 {
					return true
				}
			}
			return false
		})
		took := time.Since(start)
		_ = l.cmd.Wait()
		l.start()
		b.until("three voters again", time.Minute, func() bool { c.clear(); return c.healthy() })
		return took
	}
	var kills, hands []time.Duration
	for range rounds {
		kills = append(kills, gap(syscall.SIGKILL))
	}
	for range 5 {
		hands = append(hands, gap(syscall.SIGTERM))
	}
	return median(kills), median(hands)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// firstLine is the median time from submit until the task has written its first line.
func (b *bench) firstLine(c *benchCluster, rounds int) time.Duration {
	fifo := filepath.Join(b.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		b.t.Fatal(err)
	}
	spec := b.spec(fmt.Sprintf("name: first\nrun: echo line > %s\n", fifo))
	var took []time.Duration
	for i := range rounds {
		n := c.leader()
		start := time.Now()
		b.submit(n, fmt.Sprintf("first-%d", i), spec)
		if _, err := os.ReadFile(fifo); err != nil {
			b.t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return median(took)
}

// idle is what a cluster with nothing to do costs.
func (b *bench) idle(c *benchCluster, d time.Duration) (cpu float64, memMB, entries int) {
	l := c.leader()
	b.until("quiet", 2*time.Minute, func() bool { // the last renewals and presences
		v, err := l.status()
		time.Sleep(3 * time.Second)
		w, err2 := l.status()
		return err == nil && err2 == nil && v.Index == w.Index
	})
	before, _ := l.status()
	used := cpuTime(l.cmd.Process.Pid)
	time.Sleep(d)
	after, _ := l.status()
	return (cpuTime(l.cmd.Process.Pid) - used).Seconds() / d.Seconds(), rss(l.cmd.Process.Pid), int(after.Index - before.Index)
}

func cpuTime(pid int) time.Duration {
	s, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(s)[strings.LastIndexByte(string(s), ')')+2:])
	u, _ := strconv.Atoi(f[11])
	k, _ := strconv.Atoi(f[12])
	return time.Duration(u+k) * 10 * time.Millisecond
}

func rss(pid int) int {
	s, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(s)) {
		if kb, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(kb)[0])
			return n / 1024
		}
	}
	return 0
}

// commands is real commands a second on one node.
func (b *bench) commands(c *benchCluster, n int) float64 {
	node := c.nodes[0]
	start := time.Now()
	id := b.submit(node, "real", b.spec(fmt.Sprintf("name: real\ncommand: [/bin/true]\nshards: %d\n", n)))
	b.until("all commands done", 5*time.Minute, func() bool { return b.job(node, id).State.Final() })
	return float64(n) / time.Since(start).Seconds()
}

// cost measures f, and how much processor time of the nodes each of its n lives took.
func (c *benchCluster) cost(n int, f func() float64) (rate float64, perLife string) {
	used := func() (all time.Duration) {
		for _, n := range c.nodes {
			all += cpuTime(n.cmd.Process.Pid)
		}
		return all
	}
	before := used()
	rate = f()
	return rate, fmt.Sprintf("%d µs", ((used() - before) / time.Duration(n)).Microseconds())
}

// benchSlots is how much a node may run at once: what is measured is lanjobs, not the wait for a slot.
const benchSlots = task.MaxSlots

// skewed is how long a range takes of which the first piece has nearly all of the work: steps of half a second, which cost no
// processor. Only with cursors it can be split.
func (b *bench) skewed(c *benchCluster, split bool) time.Duration {
	say := `r=$("$CLI" task range); at=${r% *}; end=${r#* }`
	step := "at=$((at + 1))"
	if split {
		step += `; r=$("$CLI" task range --cursor "$at"); end=${r#* }`
	}
	name := fmt.Sprintf("skew-%v", split)
	spec := b.spec(fmt.Sprintf("name: %s\nshards: {range: 0-79, size: 40}\nenv: {CLI: %q}\nrun: |\n  %s\n  while [ $at -lt $end ]; do [ $at -ge 40 ] || sleep 0.5; %s; done\n",
		name, b.exe, say, step))
	start := time.Now()
	id := b.submit(c.leader(), name, spec)
	b.until("the skewed job", 5*time.Minute, func() bool { return b.job(c.leader(), id).State.Final() })
	if st := b.job(c.leader(), id).State; st != task.JobSucceeded {
		b.t.Fatalf("the skewed job is %s", st)
	}
	return time.Since(start)
}

// without gives the lines of an answer that lack a word.
func without(answer []byte, word string) (out string) {
	for line := range strings.Lines(string(answer)) {
		if !strings.Contains(line, word) {
			out += "\n" + line
		}
	}
	return out
}
