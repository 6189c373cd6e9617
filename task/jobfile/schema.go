package jobfile

import (
	"strings"
	"unicode"
)

// kind is the type of a key's value.
type kind uint8

const (
	kindText    kind = iota // one scalar, as written
	kindInt                 // plain decimal digits
	kindDecimal             // digits, and perhaps a point and more digits
	kindLength              // 250ms, 5s, 1h30m, 1d, or 0
	kindPercent             // 20%, or 0
	kindShare               // 95% or a count
	kindWord                // one of key.words
	kindTexts               // list of texts
	kindInts                // list of numbers
	kindPairs               // free names with texts
	kindMap                 // the keys of key.sub
	kindShards              // a number, or kindMap
	kindStages              // list of stages
	kindJobs                // names with stages
)

// where tells in which maps a key is known.
type where uint8

const (
	inTop   where = 1 << iota
	inStage       // an element of stages
	inJob         // a value of jobs
	inSub         // inside another key
	inWork  = inTop | inStage | inJob
)

// key is one row of the schema.
type key struct {
	name    string
	kind    kind
	in      where
	def     string   // what holds when it is not given, as help shows it
	doc     string   // one line for help
	like    string   // how to write it, shown when it is written wrongly
	words   []string // of kindWord
	also    []string // what others call it
	sub     []key
	unbuilt bool // refused by name until it is built: a key must never be taken and ignored
}

// schema is the whole format, in the order in which help shows it.
var schema = []key{
	{name: "version", kind: kindWord, in: inTop, def: "1", words: []string{"1"}, doc: "of the format",
		like: "version: 1"},
	{name: "name", kind: kindText, in: inTop, doc: "required; a-z 0-9 -, at most 63", like: "name: nightly-report"},
	{name: "description", kind: kindText, in: inTop, def: `""`, doc: "for people", like: "description: what it is for",
		also: []string{"desc", "comment", "title"}},
	{name: "labels", kind: kindPairs, in: inTop, def: "{}", doc: "for ls -l and alerts; texts as written",
		like: "labels: {team: video}", also: []string{"tags", "annotations", "metadata"}},
	{name: "queue", kind: kindText, in: inTop, def: "default", doc: "only default so far", like: "queue: default"},
	{name: "priority", kind: kindInt, in: inTop, def: "50", doc: "0-100, higher first", like: "priority: 50",
		also: []string{"nice"}},
	{name: "idempotency_key", kind: kindText, in: inTop, def: `""`,
		doc: "same key and file again: the first job; ${VAR} is expanded", like: "idempotency_key: invoices-2026-11",
		also: []string{"dedup_key", "unique_key", "request_id"}},
	{name: "idempotency_window", kind: kindLength, in: inTop, def: "7d", doc: "how long the key is remembered; 1m-90d",
		like: "idempotency_window: 7d"},
	{name: "schedule", kind: kindMap, in: inTop, doc: "cron, every, at", unbuilt: true, like: `schedule: {cron: "0 3 * * *"}`,
		also: []string{"cron", "periodic", "triggers", "on"}, sub: scheduleKeys},
	{name: "deadline", kind: kindLength, in: inTop, doc: "for the whole job", unbuilt: true, like: "deadline: 8h"},
	{name: "start_within", kind: kindLength, in: inTop, doc: "not started by then: expired", unbuilt: true, like: "start_within: 1h"},
	{name: "retain", kind: kindLength, in: inTop, def: "30d", doc: "a finished job is kept; 1m-3650d", like: "retain: 30d",
		also: []string{"ttlSecondsAfterFinished", "retention", "keep"}},

	{name: "run", kind: kindText, in: inWork, doc: "script text, given to shell", like: "run: echo hi",
		also: []string{"script"}},
	{name: "command", kind: kindTexts, in: inWork, doc: "program and arguments, no shell; ${VAR} is expanded",
		like: `command: [prog, "an argument"]`, also: []string{"cmd", "args", "exec", "entrypoint", "argv"}},
	{name: "shell", kind: kindWord, in: inWork, def: "auto", words: shells, doc: "auto = sh -e (pwsh on Windows); the machine must have it",
		like: "shell: bash", also: []string{"interpreter", "executor"}},
	{name: "env", kind: kindPairs, in: inWork, def: "{}", doc: "texts as written; nothing is the empty text; LANJOBS_* is refused",
		like: "env: {NAME: value}", also: []string{"environment", "variables", "envvars", "vars"}},
	{name: "env_files", kind: kindTexts, in: inWork, def: "[]", doc: "NAME=value files on the machine, absolute; never stored in the cluster",
		like: "env_files: [/etc/lanjobs/secrets.env]", also: []string{"env_file", "envFrom", "dotenv"}},
	{name: "files", kind: kindTexts, in: inWork, def: "[]", doc: "names and globs, sent with the job to all its stages, at most 256 KiB in all",
		like: "files: [score.py]", also: []string{"artifacts", "input_files", "uploads"}},
	{name: "workdir", kind: kindText, in: inWork, def: `""`, doc: `"" = a fresh private directory; else absolute, must exist there`,
		like: "workdir: /mnt/nas/video", also: []string{"working_dir", "working_directory", "cwd", "chdir", "dir"}},
	{name: "user", kind: kindText, in: inWork, doc: "run as", unbuilt: true, like: "user: anna", also: []string{"run_as", "username"}},
	{name: "shards", kind: kindShards, in: inWork, def: "1", doc: "how many pieces, 1-1000000: a number, or a map with one of", like: "shards: 100",
		also: []string{"replicas", "completions", "array", "matrix", "instances", "strategy", "tasks"}, sub: []key{
			{name: "count", kind: kindInt, in: inSub, doc: "the number", like: "shards: {count: 100}"},
			{name: "items", kind: kindTexts, in: inSub, doc: "one shard each", like: "shards: {items: [north, south]}", also: []string{"list", "values"}},
			{name: "files", kind: kindTexts, in: inSub, doc: "one per file; globs with **, not of hidden files; below workdir, else the job file's directory",
				like: `shards: {files: ["in/**/*.jpg"]}`, also: []string{"glob", "globs"}},
			{name: "lines", kind: kindText, in: inSub, doc: "one shard per line of this file, blank ones skipped", like: "shards: {lines: customers.txt}",
				also: []string{"file"}},
			{name: "range", kind: kindText, in: inSub, doc: "of numbers", unbuilt: true, like: "shards: {range: 0-999999, size: 10000}"},
			{name: "size", kind: kindInt, in: inSub, doc: "of a range's pieces", unbuilt: true, like: "shards: {range: 0-999999, size: 10000}"},
			{name: "from", kind: kindText, in: inSub, doc: "output of an earlier stage", unbuilt: true, like: "shards: {from: init.parts}"},
			{name: "weights", kind: kindInts, in: inSub, doc: "bigger first", unbuilt: true, like: "shards: {count: 2, weights: [3, 1]}"},
			{name: "broadcast", kind: kindText, in: inSub, doc: "one on every machine", unbuilt: true, like: "shards: {broadcast: true}"},
		}},
	{name: "broadcast", kind: kindText, in: inWork, doc: "one on every machine", unbuilt: true, like: "broadcast: true"},
	{name: "parallelism", kind: kindInt, in: inWork, def: "0", doc: "most shards at once; 0 = as many as fit", like: "parallelism: 10",
		also: []string{"max-parallel", "concurrency", "max_concurrent", "max_in_flight"}},
	{name: "placement", kind: kindMap, in: inWork, doc: "which machines", like: `placement: {require: ["gpu=true"]}`,
		also: []string{"affinity", "scheduling"}, sub: []key{
			{name: "require", kind: kindTexts, in: inSub, def: "[]", doc: `all must hold: gpu=true, "os in (linux,darwin)", arch!=arm, ssd (label exists)`,
				like: `require: ["gpu=true"]`, also: []string{"nodeSelector", "constraint", "constraints", "runs-on", "requires", "requirements"}},
			{name: "prefer", kind: kindTexts, in: inSub, doc: "adds weight", unbuilt: true, like: "prefer: [ssd=true]"},
			{name: "paths", kind: kindTexts, in: inSub, doc: "directories that must be there", unbuilt: true, like: "paths: [/mnt/nas]"},
			{name: "programs", kind: kindTexts, in: inSub, doc: "on PATH", unbuilt: true, like: "programs: [ffmpeg]"},
		}},
	{name: "resources", kind: kindMap, in: inWork, doc: "cpu, memory, disk", unbuilt: true, like: "resources: {cpu: 1}",
		also: []string{"limits", "requests"}, sub: resourceKeys},
	{name: "timeout", kind: kindLength, in: inWork, def: "24h", doc: "of one attempt; 0 = none", like: "timeout: 1h30m",
		also: []string{"timeout-minutes", "activeDeadlineSeconds", "max_runtime", "time_limit", "walltime"}},
	{name: "stall_timeout", kind: kindLength, in: inWork, doc: "no output for so long = hung", unbuilt: true, like: "stall_timeout: 10m",
		also: []string{"heartbeat_timeout"}},
	{name: "stop_grace", kind: kindLength, in: inWork, def: "30s", doc: "SIGTERM to SIGKILL; default the less of 30s and ttl/10",
		like: "stop_grace: 60s", also: []string{"terminationGracePeriod", "terminationGracePeriodSeconds", "kill_timeout", "stop_grace_period"}},
	{name: "lease", kind: kindMap, in: inWork, doc: "how fast a lost machine is noticed", like: "lease: {ttl: 5m}", sub: []key{
		{name: "ttl", kind: kindLength, in: inSub, def: "5m", doc: "2s-24h", like: "lease: {ttl: 5m}", also: []string{"duration"}},
		{name: "heartbeat", kind: kindLength, in: inSub, def: "30s", doc: "between renewals, 100ms-ttl/3; default ttl/10", like: "lease: {heartbeat: 30s}",
			also: []string{"interval", "renew"}},
		{name: "max_renew_failures", kind: kindInt, in: inSub, def: "0", doc: "stop after so many in a row; 0 = when the lease ends", like: "lease: {max_renew_failures: 5}"},
	}},
	{name: "retry", kind: kindMap, in: inWork, doc: "wait = initial x factor^n, at most max, more or less jitter", like: "retry: {attempts: 5}",
		also: []string{"retries", "backoffLimit", "max_retries", "restart", "restartPolicy", "retry_policy"}, sub: []key{
			{name: "attempts", kind: kindInt, in: inSub, def: "3", doc: "tries that may fail, the first included; 1-1000", like: "retry: {attempts: 5}",
				also: []string{"max_attempts", "count", "tries", "limit", "max_retries", "retries"}},
			{name: "initial", kind: kindLength, in: inSub, def: "10s", doc: "first wait", like: "retry: {initial: 10s}",
				also: []string{"delay", "interval", "backoff", "wait"}},
			{name: "factor", kind: kindDecimal, in: inSub, def: "2", doc: "1-100", like: "retry: {factor: 2}", also: []string{"multiplier", "coefficient"}},
			{name: "max", kind: kindLength, in: inSub, def: "10m", doc: "longest wait", like: "retry: {max: 10m}", also: []string{"max_delay", "max_interval", "max_backoff", "cap"}},
			{name: "jitter", kind: kindPercent, in: inSub, def: "20%", doc: "0-100%", like: "retry: {jitter: 20%}"},
			{name: "lease_losses", kind: kindInt, in: inSub, def: "10", doc: "a lost machine is no attempt, but so many are the end; 1-1000", like: "retry: {lease_losses: 10}"},
			{name: "permanent_on", kind: kindInts, in: inSub, def: "[64, 65, 66, 78]", doc: "exit codes: no further try", like: "retry: {permanent_on: [64, 65]}"},
			{name: "elsewhere_on", kind: kindInts, in: inSub, def: "[69, 77, 126, 127]", doc: "exit codes: next try on another machine", like: "retry: {elsewhere_on: [69, 77]}"},
		}},
	{name: "success", kind: kindMap, in: inWork, doc: "when a stage counts as done", like: "success: {at_least: 95%}", sub: []key{
		{name: "at_least", kind: kindShare, in: inSub, def: "100%", doc: "of the shards, rounded up, or a count", like: "success: {at_least: 95%}",
			also: []string{"min", "threshold", "percent"}},
		{name: "fail_fast", kind: kindText, in: inSub, doc: "stop the rest", unbuilt: true, like: "success: {fail_fast: true}", also: []string{"fail-fast"}},
	}},

	{name: "stages", kind: kindStages, in: inTop, doc: "list, in order; each takes the keys of the work, name and when", like: "stages: [{name: first, run: ./a.sh}]",
		also: []string{"steps", "phases"}},
	{name: "jobs", kind: kindJobs, in: inTop, doc: "map of names; each takes the keys of the work, needs and when", like: "jobs: {first: {run: ./a.sh}}",
		also: []string{"groups", "units", "dag"}},
	{name: "name", kind: kindText, in: inStage, doc: "of a stage in the list, required", like: "name: fetch"},
	{name: "needs", kind: kindTexts, in: inJob, def: "[]", doc: "jobs that must be done first", like: "needs: [fetch]",
		also: []string{"depends_on", "dependsOn", "dependencies", "after", "requires"}},
	{name: "when", kind: kindWord, in: inStage | inJob, def: "success", words: []string{"success", "failure", "always"},
		doc: "opens after this end of what it needs: success, failure, always", like: "when: always", also: []string{"if", "condition", "trigger_rule"}},
}

// The shells a job file may name.
var shells = []string{"auto", "sh", "bash", "zsh", "pwsh", "cmd", "python3"}

// Keys inside ones that are not built yet are here so that a stray "timezone" is told where it belongs.
var (
	scheduleKeys = []key{{name: "cron", in: inSub}, {name: "every", in: inSub}, {name: "at", in: inSub},
		{name: "timezone", in: inSub, also: []string{"tz"}}, {name: "overlap", in: inSub, also: []string{"concurrencyPolicy"}},
		{name: "misfire", in: inSub, also: []string{"catchup"}}, {name: "misfire_grace", in: inSub, also: []string{"startingDeadlineSeconds"}}}
	resourceKeys = []key{{name: "cpu", in: inSub, also: []string{"cpus"}}, {name: "memory", in: inSub, also: []string{"mem", "ram"}}, {name: "disk", in: inSub}}
)

// keysIn gives the keys of a kind of map.
func keysIn(w where) []key {
	var out []key
	for _, k := range schema {
		if k.in&w != 0 {
			out = append(out, k)
		}
	}
	return out
}

// find gives a key by its name.
func find(keys []key, name string) *key {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

// fold makes spellings of one word alike: Time-Out, time_out and timeout.
func fold(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '-' && r != '_' && r != ' ' {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}
