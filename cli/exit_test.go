package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lanjobs/task"
	"lanjobs/transport"
)

// TestLikelyMistakes: the messages of the manual's list of mistakes, with their exit codes.
func TestLikelyMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*bench)
		line string
		code int
		want string
	}{
		"no node": {func(b *bench) { b.up = false }, "status", 3,
			"lanjobs: no node is running on this machine.\n      run a job here: lanjobs run job.yaml · start a cluster: lanjobs init · join one: lanjobs join MACHINE\n"},
		"peer refuses": {func(b *bench) {
			b.up, b.joinErr = false, task.NewProblem(task.ErrNoLeader, "cannot reach mini-1:7420 (connection refused). A firewall must let in TCP and UDP 7420.",
				"If \"lanjobs status\" on mini-1 says \"this machine only\", run \"lanjobs init\" there first.")
		}, "join mini-1 --token LJ1-x", 6,
			"lanjobs: cannot reach mini-1:7420 (connection refused). A firewall must let in TCP and UDP 7420.\n      If \"lanjobs status\" on mini-1 says \"this machine only\", run \"lanjobs init\" there first.\n"},
		"member elsewhere": {func(b *bench) {
			b.api.view.Name = "garage"
			b.api.add(task.Spec{Name: "a"})
			b.api.add(task.Spec{Name: "b"})
		}, "join mini-1 --token LJ1-x", 7,
			"lanjobs: this machine belongs to \"garage\" (2 unfinished jobs). lanjobs leave, or put its data aside: lanjobs join mini-1 --replace\n"},
		"other CA": {func(b *bench) {
			b.up, b.joinErr = false, task.NewProblem(task.ErrNotAllowed, "mini-1 is not the cluster this token was made for (token: CA 3F9A-7C21…, mini-1: CA 81C0-44D2…).", "Nothing was sent. Make a new one on a member: lanjobs token create")
		}, "join mini-1 --token LJ1-x", 4,
			"lanjobs: mini-1 is not the cluster this token was made for (token: CA 3F9A-7C21…, mini-1: CA 81C0-44D2…).\n      Nothing was sent. Make a new one on a member: lanjobs token create\n"},
		"old token": {func(b *bench) {
			b.up, b.joinErr = false, task.NewProblem(task.ErrNotAllowed, "this token ended at 14:02 (tokens last 1h, 1 use). On a member: lanjobs token create", "")
		}, "join mini-1 --token LJ1-x", 4, "lanjobs: this token ended at 14:02 (tokens last 1h, 1 use). On a member: lanjobs token create.\n"},
		"unknown key": {func(b *bench) { b.write("video.yaml", "name: v\nrun: x\nretry:\n  atempts: 3\n") }, "submit video.yaml", 2, "video.yaml:4:3: unknown key \"atempts\" in retry\n"},
		"no machine": {func(b *bench) {
			b.write("job.yaml", helloFile)
			b.api.note = "no machine can run it now: gpu=true, 0 of 4 (pc-win has gpu=yes)"
		}, "submit job.yaml", 0,
			"lanjobs: submitted j000001, but no machine can run it now: gpu=true, 0 of 4 (pc-win has gpu=yes). Why: lanjobs show j000001 --why\n"},
		"same key": {func(b *bench) {
			b.write("job.yaml", helloFile)
			b.api.refuse = task.NewProblem(task.ErrConflict, `idempotency key "invoices-2026-11" was used 3h ago by j7h2aa with a different file. Other work needs another key.`, "")
		}, "submit job.yaml", 7, "lanjobs: idempotency key \"invoices-2026-11\" was used 3h ago by j7h2aa with a different file. Other work needs another key.\n"},
		"no such job": {func(b *bench) { j := b.api.add(task.Spec{Name: "transcode"}); j.view.State = task.JobRunning }, "show transcod", 5,
			"lanjobs: no job \"transcod\". Did you mean \"transcode\" (j000001, running)?\n      All jobs: lanjobs ls\n"},
		"no such flag": {nil, "submit --wiat job.yaml", 2, "lanjobs submit: no flag --wiat. Did you mean --wait? All flags: lanjobs submit --help\n"},
		"not yours":    {func(b *bench) { b.denied = true }, "status", 4, "you are \"anna\" (socket: permission denied).\n      sudo lanjobs status"},
		"other version": {func(b *bench) {
			b.up, b.joinErr = false, task.NewProblem(task.ErrConflict, `this is lanjobs 1.7, "home" runs 1.4; 1.7 works with 1.6 and 1.7 only. Nothing was changed.`, "Use 1.4 here, or upgrade the cluster one minor version at a time.")
		}, "join mini-1 --token LJ1-x", 7, "lanjobs: this is lanjobs 1.7, \"home\" runs 1.4; 1.7 works with 1.6 and 1.7 only. Nothing was changed.\n      Use 1.4 here"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if c.set != nil {
				c.set(b)
			}
			b.expect(c.code, strings.Fields(c.line)...)
			b.wants("stderr", b.err.String(), c.want)
		})
	}
}

// TestNoQuorum: a write is repeated with one request id for 30 s, then the answer says who is missing.
func TestNoQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.api.leader = false
		b.write("job.yaml", helloFile)
		start := time.Now()
		b.expect(exitUnreachable, "submit", "job.yaml")
		b.wants("stderr", b.err.String(), "lanjobs: "+noQuorumText+"\n      "+noQuorumHint+"\n")
		if took := time.Since(start); took < writePatience || took > writePatience+5*time.Second {
			t.Errorf("gave up after %s", took)
		}
		ids := map[string]int{}
		for _, r := range b.api.requests {
			if r.path == "/v1/jobs" {
				ids[r.id]++
			}
		}
		if len(ids) != 1 || len(b.api.requests) < 10 {
			t.Errorf("request ids of the tries: %v", ids)
		}
	})
}

// TestLeaderChange: a write that meets an election succeeds, once.
func TestLeaderChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.write("job.yaml", helloFile)
		b.expect(exitDone, "status")
		b.api.outages = 4
		b.expect(exitDone, "submit", "job.yaml")
		if len(b.api.jobs) != 1 || b.out.String() != "j000001\n" {
			t.Errorf("%d jobs, output %q", len(b.api.jobs), b.out)
		}
	})
}

// TestTimeoutWithoutLeader: nothing was waited for but an answer, so the lack of it is the news.
func TestTimeoutWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.api.leader = false
		b.write("job.yaml", helloFile)
		b.expect(exitUnreachable, "submit", "job.yaml", "--timeout", "3s")
	})
}

func TestUsageFaults(t *testing.T) {
	b := newBench(t)
	b.write("job.yaml", helloFile)
	b.write("night.yaml", nightFile)
	for line, want := range map[string]string{
		"submit":                             "lanjobs submit: FILE is missing. Usage: lanjobs submit [flags] FILE…|-",
		"logs":                               "lanjobs logs: JOB is missing.",
		"logs a b":                           `lanjobs logs: "b" is too much.`,
		"node label nas":                     "lanjobs node label: KEY is missing.",
		"node label nas x":                   `"x": write KEY=VALUE to set a label, KEY- to remove one.`,
		"sbmit job.yaml":                     `lanjobs: no command "sbmit". Did you mean "submit"? All commands: lanjobs --help`,
		"node drian nas":                     `lanjobs node: no command "drian". Did you mean "drain"? All commands: lanjobs node --help`,
		"node":                               "lanjobs node: say what to do.",
		"ls -fq":                             "lanjobs ls: no flag --fq.",
		"logs -fq j":                         "lanjobs logs: no flag --fq. Write -f -q apart.",
		"ls -o jsn":                          `--output "jsn" is none of table, wide, json, yaml, name. Did you mean "json"?`,
		"ls --timeout 5":                     `lanjobs ls: "5" is not a value for --timeout`,
		"ls --timeout":                       "lanjobs ls: flag --timeout needs a value.",
		"logs j --tail x":                    `lanjobs logs: "x" is not a value for --tail`,
		"ls -o json --output yaml":           "are the same flag: give it once.",
		"ls -l a=b=c":                        `"a=b=c" is not a condition`,
		"ls --state done":                    `--state "done" is none of`,
		"ls --wait":                          "lanjobs ls: no flag --wait.",
		"show j/main/x":                      `shards "x"`,
		"show j --why --shards":              "choose one",
		"cancel j/main/3":                    "only whole jobs are cancelled",
		"retry j#1":                          "a shard is tried again, not an attempt",
		"retry j --all --dead":               "exclude each other",
		"submit --set X=1 job.yaml":          `--set "X=1": write --set env.NAME=VALUE`,
		"submit --key a job.yaml job.yaml":   "--key names one job",
		"submit missing.yaml":                "missing.yaml: cannot be read: no such file",
		"run":                                "FILE is missing, or -- and a command.",
		"run --":                             `no command after "--".`,
		"run job.yaml -- x":                  "give one",
		"run job.yaml --shards 3":            "--shards is for a command after",
		"run --each *.mov --shards 3 -- x":   "exclude each other",
		"run --local --detach -- x":          "exclude each other",
		"run --shards 0 -- x":                "lanjobs run:",
		"run --each nothing* -- x":           "lanjobs run:",
		"init --name Home!":                  `for example "home"`,
		"init --listen mini-1":               "write an IP address of this machine",
		"init --listen 1.2.3.4:x":            "the port is a number",
		"join m n":                           `"n" is too much.`,
		"join m --token= ":                   "--token is empty (an unset variable?)",
		"events --job=":                      "lanjobs events: --job is empty (an unset variable?).",
		"ls --data-dir=":                     "--data-dir is empty",
		"logs j --tail 99999999999999999999": "a whole number that is not as large.",
		"join m --token a --token-file b":    "give one",
		"join http://m --token a":            "write a host name or an address",
		"join m --token a --label x":         `--label "x": write KEY=VALUE.`,
		"token create --uses 0":              "at least 1",
		"approve K7QF-2M9X":                  "There is no terminal to ask on: add --yes.",
		"approve --role leader":              `--role "leader" is none of voter, worker, viewer, operator, admin.`,
		"alerts":                             "not built yet",
		"schedule":                           "lanjobs schedule: say what to do.",
		"schedule sohw x":                    `no command "sohw". Did you mean "show"?`,
		"schedule show":                      "SCHEDULE is missing.",
		"schedule show x --next 101":         "--next 101 is not from 0 to 100.",
		"queue set":                          "QUEUE is missing.",
		"queue set video --max -1":           "--max -1 is negative; 0 means no limit.",
		"queue set video --max two":          `"two" is not a value for --max`,
		"queue set video --balance modulus":  `--balance "modulus" is none of least-loaded, round-robin, modulo, consistent-hash. Did you mean "modulo"?`,
		"pause hello/main":                   `"hello/main": only whole jobs are paused.`,
		"init --cluster garage":              "the name of a new one: --name garage",
		"priority hello":                     "NUMBER is missing.",
		"priority hello high":                `"high" is not a number from 0 to 100.`,
		"priority hello 101":                 `"101" is not a number from 0 to 100.`,
		"ls --dead --state failed":           "--dead lists shards, --state jobs: give one.",
		"ls --label a=b=c":                   `--label: "a=b=c" is not a condition`,
		"ls --limit 0":                       "--limit 0: write a number from 1 on.",
		"show hello --dead --why":            "choose one.",
		"submit night.yaml --wait":           "lanjobs schedule trigger NAME --wait",
		"completion tcsh":                    "none of bash",
		"help nonsense":                      `nothing on "nonsense"`,
		"task info":                          "this is not inside a task",
		"serve --log-format xml --data-dir /nonexistent": "text or json",
		"serve --slots 5000":                             "slots 5000: use 1 to 1024",
		"cancel hello hello":                             "add --yes",
		"node drain":                                     "NODE is missing, or --self",
		"node drain nas --self":                          "name two machines",
	} {
		t.Run(line, func(t *testing.T) {
			b.t, b.api.jobs = t, nil
			b.api.add(task.Spec{Name: "hello"})
			b.expect(exitUsage, strings.Fields(line)...)
			b.wants("stderr", b.err.String(), want)
			if b.out.String() != "" {
				t.Errorf("standard output of a usage fault: %q", b.out)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		task.ErrNotFound: 5, task.ErrConflict: 7, task.ErrStaleToken: 7, task.ErrInvalid: 2, task.ErrTooLarge: 2, task.ErrNotAllowed: 4,
		task.ErrNoLeader: 6, transport.ErrNoNode: 3, errInterrupted: 130, errTimedOut: 8, errors.New("other"): 1, silently(42): 42,
	} {
		if got := exitCode(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: exit %d, want %d", err, got, want)
		}
	}
}
