package jobfile

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"lanjobs/task"
)

// Defaults that task does not know, since they are the file's and not a rule's.
const (
	defaultPriority = 50
	defaultTimeout  = 24 * task.Hour
	defaultRetain   = 30 * task.Day
	defaultWindow   = 7 * task.Day
	defaultShell    = "auto"
)

// build fills a Spec from the scopes. A value with a fault is missing there and becomes its default; the Spec is then
// only good for finding more faults.
func (l *loader) build(f *file) *task.Spec {
	top := f.top
	spec := &task.Spec{
		Name:              get(top, "name", ""),
		Description:       get(top, "description", ""),
		Labels:            slices.Clone(get(top, "labels", []task.KV(nil))),
		Queue:             get(top, "queue", task.DefaultQueue),
		Priority:          get(top, "priority", defaultPriority),
		IdempotencyKey:    get(top, "idempotency_key", ""),
		IdempotencyWindow: get(top, "idempotency_window", defaultWindow),
		Schedule:          l.schedule(top),
		Deadline:          get(top, "deadline", task.Millis(0)),
		StartWithin:       get(top, "start_within", task.Millis(0)),
		Retain:            get(top, "retain", defaultRetain),
	}
	slices.SortFunc(spec.Labels, func(a, b task.KV) int { return strings.Compare(a.Name, b.Name) })
	if spec.Name == "" && l.places["name"] == nil && !l.blamed("name") {
		hint := "add  name: hello"
		base := path.Base(strings.ReplaceAll(l.name, `\`, "/"))
		if guess := strings.TrimSuffix(strings.TrimSuffix(base, ".yml"), ".yaml"); validName(guess) {
			hint = "add  name: " + guess
		}
		l.whole("name", "the job has no name", hint)
	}
	l.workOnce(f)
	set := l.set()
	spec.IdempotencyKey = task.ExpandVars(spec.IdempotencyKey, known(env(top, set), spec.Name))
	for i, s := range f.stages {
		st := l.stageSpec(s, set)
		if i > 0 && s.name != "" && l.places["stages"] != nil {
			st.Needs = []string{spec.Stages[i-1].Name}
		}
		spec.Stages = append(spec.Stages, st)
	}
	spec.Files = l.files(f)
	return spec
}

// workOnce checks that the top level has exactly one of run, command, stages and jobs, and nothing that would have no effect.
func (l *loader) workOnce(f *file) {
	first := ""
	for _, k := range []string{"run", "command", "stages", "jobs"} {
		switch {
		case l.places[k] == nil && !l.blamed(k):
		case first == "":
			first = k
		case l.places[k] != nil && l.places[first] != nil:
			l.faultAt(l.places[k], k, fmt.Sprintf("%s and %s exclude each other; %s is at line %d", first, k, first, l.places[first].Line), "")
		}
	}
	if (first == "stages" || first == "jobs") && f.stages[0] == f.top {
		l.bad["run"] = true // what is wrong with them has been told
	}
	if first == "" {
		l.whole("run", "nothing to run: the file has none of run, command, stages, jobs", "add  run: echo hello")
	}
	for _, k := range []string{"shards", "shard_key", "broadcast", "parallelism", "success"} {
		if f.stages[0] != f.top && l.places[k] != nil && !l.blamed(k) {
			l.faultAt(l.places[k], k, k+" at the top level does not reach "+first, "write it where it is meant")
		}
	}
}

// asUser adds what a stage with a user asks of machines: that they say that they allow it.
func asUser(user string, require []task.Requirement) []task.Requirement {
	if user == "" || !validLabel(task.UserLabel+user) { // the latter is refused with words of its own
		return require
	}
	r := task.Requirement{Label: task.UserLabel + user, Op: task.OpEqual, Values: []string{"true"}}
	if slices.ContainsFunc(require, func(o task.Requirement) bool { return o.String() == r.String() }) {
		return require
	}
	return append(require, r)
}

// stageSpec fills one stage.
func (l *loader) stageSpec(s *scope, set []task.KV) task.StageSpec {
	lease := task.DefaultLease(get(s, "lease.ttl", task.DefaultTTL))
	lease.Heartbeat = get(s, "lease.heartbeat", lease.Heartbeat)
	lease.StopGrace = get(s, "stop_grace", lease.StopGrace)
	lease.MaxRenewFailures = get(s, "lease.max_renew_failures", 0)
	st := task.StageSpec{
		Name:        s.name,
		Needs:       some(get(s, "needs", []string(nil))),
		When:        task.When(get(s, "when", string(task.WhenSuccess))),
		Run:         script(get(s, "run", "")),
		Command:     some(get(s, "command", []string(nil))),
		Env:         env(s, set),
		EnvFiles:    some(get(s, "env_files", []string(nil))),
		Workdir:     get(s, "workdir", ""),
		User:        get(s, "user", ""),
		Shards:      1,
		ShardKey:    get(s, "shard_key", ""),
		Parallelism: get(s, "parallelism", 0),
		Require:     asUser(get(s, "user", ""), l.conditions(s, "placement.require")),
		Prefer:      l.conditions(s, "placement.prefer"),
		Paths:       some(get(s, "placement.paths", []string(nil))),
		Programs:    some(get(s, "placement.programs", []string(nil))),
		Resources: task.Resources{
			MilliCPU: get(s, "resources.cpu", 0), // not stated: booked as one processor, and not enforced
			MemoryMB: get(s, "resources.memory", 0),
			DiskMB:   get(s, "resources.disk", 0),
		},
		Timeout:      get(s, "timeout", defaultTimeout),
		StallTimeout: get(s, "stall_timeout", task.Millis(0)),
		OnSleep:      onSleep(s),
		Lease:        lease,
		Retry:        retry(s),
		Success:      get(s, "success.at_least", task.Success{Percent: 100}),
	}
	st.Success.FailFast = get(s, "success.fail_fast", false)
	if len(st.Command) == 0 {
		st.Shell = get(s, "shell", defaultShell)
	} else if p := join(s.path, "shell"); l.places[p] != nil {
		l.faultAt(l.places[p], p, "shell has no effect on command, which uses none", "remove it, or use run")
	}
	l.shardsOf(s, &st)
	return st
}

// onSleep leaves the default unsaid, so that members which do not know the key take the job (R47).
func onSleep(s *scope) task.OnSleep {
	if v := task.OnSleep(get(s, "on_sleep", "")); v != task.OnSleepRelease {
		return v
	}
	return ""
}

func retry(s *scope) task.RetryPolicy {
	d := task.DefaultRetry()
	return task.RetryPolicy{
		Attempts:    get(s, "retry.attempts", d.Attempts),
		Initial:     get(s, "retry.initial", d.Initial),
		Factor:      get(s, "retry.factor", d.Factor),
		Max:         get(s, "retry.max", d.Max),
		JitterPct:   get(s, "retry.jitter", d.JitterPct),
		LeaseLosses: get(s, "retry.lease_losses", d.LeaseLosses),
		PermanentOn: some(get(s, "retry.permanent_on", d.PermanentOn)),
		ElsewhereOn: some(get(s, "retry.elsewhere_on", d.ElsewhereOn)),
	}
}

// some makes one form of the two empty lists, so that a Spec is the same after a trip through JSON; and its own copy, as
// stages may share what they inherit.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

// script drops what editors put before "#!" without showing it. Line ends need no care: a block of text has LF only,
// whatever the file has, and a text in quotes has a CR only where \r was typed.
func script(s string) string { return strings.TrimPrefix(s, "\uFEFF") }

// env merges the top level's variables, the stage's own, and those set from outside, the later over the earlier.
func env(s *scope, set []task.KV) []task.KV {
	var out []task.KV
	index := map[string]int{}
	add := func(list []task.KV) {
		for _, kv := range list {
			if i, ok := index[kv.Name]; ok {
				out[i] = kv
				continue
			}
			index[kv.Name] = len(out)
			out = append(out, kv)
		}
	}
	if s.outer != nil {
		add(get(s.outer, "env", []task.KV(nil)))
	}
	own, _ := s.values["env"].([]task.KV)
	add(own)
	add(set)
	return out
}

// known gives the variables that have a value before a job is there: its name, and those that its file gives.
func known(list []task.KV, job string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name == "LANJOBS_JOB_NAME" {
			return job, true
		}
		i := slices.IndexFunc(list, func(kv task.KV) bool { return kv.Name == name })
		if i < 0 {
			return "", false
		}
		return list[i].Value, true
	}
}

// set reads Options.Set.
func (l *loader) set() []task.KV {
	var out []task.KV
	for _, k := range slices.Sorted(maps.Keys(l.o.Set)) {
		name, ok := strings.CutPrefix(k, "env.")
		value := l.o.Set[k]
		if message := badEnv(name, value); !ok {
			l.whole("--set "+k, "--set cannot set "+strconv.Quote(k), "only variables: --set env.NAME=VALUE")
		} else if message != "" {
			l.whole("--set "+k, "--set "+k+": "+message, "")
		} else {
			out = append(out, task.KV{Name: name, Value: value})
		}
	}
	return out
}
