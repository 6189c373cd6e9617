package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/task/jobfile"
	"lanjobs/transport"
)

const hello = "name: hello\nrun: echo hi\n"

// specJSON is what a client makes of a job file.
func specJSON(t *testing.T, text string) string {
	t.Helper()
	spec, faults := jobfile.Load("job.yaml", []byte(text), jobfile.Options{})
	if len(faults) > 0 {
		t.Fatal(jobfile.Render("job.yaml", faults))
	}
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSubmit(t *testing.T) {
	for _, x := range []struct{ name, kind, body string }{
		{"a spec", transport.ContentTypeSpec, specJSON(t, hello)},
		{"YAML", "application/yaml", hello},
		{"JSON", "application/json", `{"name": "hello", "run": "echo hi"}`},
		{"what curl sends", "application/x-www-form-urlencoded", hello},
		{"no type", "", hello},
		{"an odd type", "a/b/c", hello},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := newCluster(t)
			var r task.SubmitReply
			a := c.ask("POST", "/v1/jobs", x.body, "Content-Type", x.kind, transport.HeaderRequestID, "q1").ok(&r)
			if a.status != 201 || r.ID != "j7k3q9" || r.Name != "hello" || r.Existed || r.Note != "" || a.header.Get("Location") != "/v1/jobs/j7k3q9" {
				t.Errorf("%d %+v", a.status, r)
			}
			j := c.state.Job("j7k3q9")
			if j.By != "anna" || j.Request != "q1" || j.Spec.Stages[0].Run != "echo hi" {
				t.Errorf("job is %+v", j)
			}
			if want, _ := digest(&j.Spec.Spec); string(want) != j.Spec.Digest {
				t.Error("the digest is not that of the spec")
			}
		})
	}
}

func TestSubmitOfWhatIsNoJob(t *testing.T) {
	c := newCluster(t)
	spec := specJSON(t, hello)
	for _, x := range []struct{ kind, body, words string }{
		{"", "", "no job in the body"},
		{"", "name: hello\natempts: 5\nrun: x\n", `2:1: unknown key "atempts"`},
		{"", "name: hello\nfiles: [a.sh]\nrun: x\n", "submitting machine only"},
		{"", "name: hello\nenv_files: [x]\nrun: x\n", "absolute"},
		{"", "\x00", ""},
		{"", "{", ""},
		{"multipart/form-data; boundary=x", "--x", "not a form"},
		{transport.ContentTypeSpec, hello, "cannot be read"},
		{transport.ContentTypeSpec, `null`, "it is null"},
		{transport.ContentTypeSpec, strings.Replace(spec, `"name":"hello"`, `"name":"hello","name":"other"`, 1), "name is given twice"},
		{transport.ContentTypeSpec, strings.Replace(spec, `"name"`, `"Name"`, 1), `unknown field "Name" | Did you mean "name"?`},
		{transport.ContentTypeSpec, strings.Replace(spec, `"attempts":3`, `"attempts":3,"attempts":9`, 1), "attempts is given twice"},
		{transport.ContentTypeSpec, `{}`, "problem"},
		{transport.ContentTypeSpec, strings.Replace(spec, `"name"`, `"nmae"`, 1), `unknown field "nmae"`},
		{transport.ContentTypeSpec, strings.Replace(spec, `"shards":1`, `"shards":0`, 1), "shards 0 is not from 1"},
		{transport.ContentTypeSpec, strings.Replace(spec, `"shards":1`, `"shards":1e12`, 1), "cannot be read"},
		{transport.ContentTypeSpec, strings.Replace(spec, `"priority":50`, `"priority":101`, 1), "priority 101"},
		{transport.ContentTypeSpec, spec + spec, "something follows"},
	} {
		p := c.ask("POST", "/v1/jobs", x.body, "Content-Type", x.kind).problem(400, "invalid", x.words)
		if strings.Contains(x.words, ":") && len(p.Faults) == 0 {
			t.Errorf("no faults with %s", p.Detail)
		}
	}
	c.ask("POST", "/v1/jobs", "name: hello\nrun: \""+strings.Repeat("x", task.MaxJobFileBytes)+"\"\n").problem(413, "too_large", "256 KiB")
	if len(c.commands) > 0 {
		t.Errorf("%T was proposed", c.commands[0])
	}
	// Without a leader a faulty file is refused all the same, and at once.
	c.standing = Standing{}
	c.ask("POST", "/v1/jobs", "name: hello\n").problem(400, "invalid", "nothing to run")
}

const invoices = "name: send-invoices\nidempotency_key: invoices-2026-11\nrun: ./invoice.sh\n"

func TestIdempotencyKey(t *testing.T) {
	c := newCluster(t)
	c.wall = noon.Add(-3 * time.Hour)
	first := c.submit(invoices)
	c.wall = noon
	var r task.SubmitReply
	if a := c.ask("POST", "/v1/jobs", "# another text of the same job\n"+invoices).ok(&r); a.status != 200 || r.ID != first || !r.Existed {
		t.Errorf("%d %+v", a.status, r)
	}
	other := strings.Replace(invoices, "invoice.sh", "other.sh", 1)
	const words = `idempotency key "invoices-2026-11" was used 3h ago by j7k3q9 with a different file. | Other work needs another key.`
	c.ask("POST", "/v1/jobs", other).problem(409, "conflict", words)
	c.ask("POST", "/v1/jobs?dry_run=1", other).problem(409, "conflict", words)
	if c.ask("POST", "/v1/jobs?dry_run=1", invoices).ok(&r); r.ID != first || !r.Existed {
		t.Errorf("dry run: %+v", r)
	}
	if c.ask("POST", "/v1/jobs", hello, "Idempotency-Key", "k1").ok(&r); c.state.Job(r.ID).Spec.IdempotencyKey != "k1" {
		t.Error("the key of the header was lost")
	}
	c.ask("POST", "/v1/jobs", invoices, "Idempotency-Key", "k1").problem(400, "invalid", "the header another one")
	c.ask("POST", "/v1/jobs", hello, "Idempotency-Key", strings.Repeat("k", 300)).problem(400, "invalid", "idempotency_key")
}

func TestDryRunStoresNothing(t *testing.T) {
	c := newCluster(t)
	var r task.SubmitReply
	if a := c.ask("POST", "/v1/jobs?dry_run=1", hello).ok(&r); r.ID != "" || r.Name != "hello" || a.status != 200 {
		t.Errorf("%d %+v", a.status, r)
	}
	c.ask("POST", "/v1/jobs?dry_run", "name: hello\n").problem(400, "invalid", "nothing to run")
	if len(c.commands) > 0 || c.state.JobSeqs() > 0 {
		t.Error("something was stored")
	}
}

func TestSubmitSaysThatNoMachineCanRunIt(t *testing.T) {
	for _, x := range []struct{ name, require, want string }{
		{"near miss", "gpu=true", "no machine can run it now: gpu=true, 0 of 4 (pc-win has gpu=yes)"},
		{"label nearly so called", "gpus=yes", "no machine can run it now: gpus=yes, 0 of 4 (pc-win has gpu=yes)"},
		{"nothing like it", "ssd", "no machine can run it now: ssd, 0 of 4"},
		{"two conditions", "gpu=yes, os=linux", "no machine can run it now: gpu=yes, os=linux, 0 of 4 (mini-1 has os=darwin (likewise mini-2), pc-win has os=windows)"},
		{"no such node", "node=naz", "no machine can run it now: node=naz, 0 of 4 (did you mean node=nas?)"},
		{"silent", "laptop", "no machine can run it now: laptop: mini-2 is silent for 4m, asleep?"},
		{"draining", "node=pc-win", "no machine can run it now: node=pc-win is draining"},
		{"only the leader, and it may", "node=mini-1", ""},
		{"full but fitting", "node=nas", ""},
		{"fits", "os!=windows", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := busy(t)
			var r task.SubmitReply
			c.ask("POST", "/v1/jobs", "name: x\nplacement: {require: ["+x.require+"]}\nrun: echo\n").ok(&r)
			if r.Note != x.want {
				t.Errorf("note is %q, want %q", r.Note, x.want)
			}
		})
	}
	for _, x := range []struct{ file, want string }{
		{"shell: zsh", "no machine can run it now: none has the shell zsh: mini-1 has bash, sh; nas has none (likewise pc-win)"},
		{"shell: bash", ""},
		{"shell: auto", ""},
		{"resources: {disk: 40Gi}", "no machine can run it now: mini-1 is too small: the shard asks for disk 40 GiB, it has 39.1 GiB to give (of 48.8 GiB free, 20 % stays free) (likewise mini-2, nas, pc-win)"},
		{"resources: {disk: 39Gi}", ""},
	} {
		c := newCluster(t)
		mini := c.state.Node("n1").Info
		mini.Shells = []string{"bash", "sh"}
		c.do(0, &fsm.RegisterNode{Info: mini, Incarnation: 2}, &fsm.SetOnline{Node: "n2"})
		if strings.HasPrefix(x.file, "resources") {
			c.do(0, &fsm.SetOnline{Node: "n2", Online: true})
		}
		var r task.SubmitReply
		if c.ask("POST", "/v1/jobs", "name: x\nrun: echo\n"+x.file+"\n").ok(&r); r.Note != x.want {
			t.Errorf("%s: note is %q, want %q", x.file, r.Note, x.want)
		}
	}
	c := busy(t)
	var r task.SubmitReply
	c.ask("POST", "/v1/jobs?dry_run=1", "name: x\nstages:\n- {name: a, run: a}\n- {name: b, run: b, placement: {require: [gpu=true]}}\n").ok(&r)
	if want := "no machine can run stage b now: gpu=true, 0 of 4 (pc-win has gpu=yes)"; r.Note != want {
		t.Errorf("note is %q", r.Note)
	}
}

func TestARepeatedSubmitIsOneJob(t *testing.T) {
	c := newCluster(t)
	c.lose = 1 // the first answer is lost after the commit
	var r task.SubmitReply
	c.ask("POST", "/v1/jobs", hello, transport.HeaderRequestID, "q1").ok(&r)
	if r.ID != "j7k3q9" || r.Existed {
		t.Errorf("%+v", r)
	}
	// The client repeats by itself.
	c.ask("POST", "/v1/jobs", hello, transport.HeaderRequestID, "q1").ok(&r)
	if r.ID != "j7k3q9" || r.Existed || c.state.JobSeqs() != 1 {
		t.Errorf("%+v, %d jobs", r, c.state.JobSeqs())
	}
}

func TestARefusalOfTheLedgerIsTold(t *testing.T) {
	c := newCluster(t)
	// More shards than all jobs of a cluster may have together; each job by itself is allowed.
	for range 10 {
		c.submit("name: big\nshards: 1000000\nrun: echo\n")
	}
	c.ask("POST", "/v1/jobs", hello).problem(413, "too_large", "shards together")
}

var _ fsm.Command = (*fsm.SubmitJob)(nil)

// A one-off time that has passed is refused also where the file was checked elsewhere, but not for a repeat right after it.
func TestSubmitOfATimeThatHasPassed(t *testing.T) {
	for _, x := range []struct {
		ago    time.Duration
		status int
	}{{time.Hour, 400}, {30 * time.Second, 201}, {-time.Hour, 201}} {
		c := newCluster(t)
		at := noon.Add(-x.ago).UTC().Format(time.RFC3339)
		file := "name: once\nschedule: {at: " + at + "}\nrun: echo hi\n"
		a := c.ask("POST", "/v1/jobs", specJSON(t, file), "Content-Type", transport.ContentTypeSpec, transport.HeaderRequestID, "q1")
		if a.status != x.status || x.status != 201 && !strings.Contains(a.body, "schedule.at") {
			t.Errorf("%s: %d %s", x.ago, a.status, a.body)
		}
	}
}
