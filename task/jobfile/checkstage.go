package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// maxArgument is what Linux hands a program as one argument or variable, its end mark included; more fails at each start.
const maxArgument = 128<<10 - 1

const (
	maxExitCode  = 1<<31 - 1 // Windows knows more than 255
	maxRetries   = 1000
	minHeartbeat = 100 * task.Millis(1)
)

func (c *checker) stageSpec(s *task.StageSpec) {
	c.work(s)
	c.environment(s)
	c.user(s.User)
	c.shards(s)
	c.placement(s)
	c.resources(s.Resources)
	if s.When != task.WhenSuccess && s.When != task.WhenFailure && s.When != task.WhenAlways {
		c.fault(fmt.Sprintf("when %s is not known", quote(string(s.When))), "one of success, failure, always", "when")
	} else if s.When == task.WhenFailure && len(s.Needs) == 0 {
		c.fault("when: failure never holds for a stage that comes after nothing", "", "when", "needs")
	}
	c.length("timeout", s.Timeout, 0, MaxLength)
	c.patience("stall_timeout", s.StallTimeout)
	switch s.OnSleep {
	case "", task.OnSleepRelease, task.OnSleepKeep, task.OnSleepFinish:
	default:
		c.fault(fmt.Sprintf("on_sleep %s is not known", quote(string(s.OnSleep))), "one of release, keep, finish", "on_sleep")
	}
	c.lease(s.Lease)
	c.retry(s.Retry)
}

// user checks the name of a user: it becomes a label, too.
func (c *checker) user(name string) {
	switch {
	case name == "":
	case len(task.UserLabel+name) > task.MaxNameLength || !validLabel(task.UserLabel+name):
		c.fault(fmt.Sprintf("user %s is not the name of a user that machines could allow", quote(name)), "letters, digits and - _ . only", "user")
	}
}

// work checks that there is one thing to run.
func (c *checker) work(s *task.StageSpec) {
	switch {
	case s.Run != "" && len(s.Command) > 0:
		c.fault("run and command exclude each other", "", "command", "run")
	case len(s.Command) > 0:
		if s.Command[0] == "" {
			c.fault("command has no program", "", "command[0]")
		}
		if s.Shell != "" {
			c.fault("shell has no effect on command, which uses none", "", "shell")
		}
	case strings.TrimSpace(s.Run) == "":
		c.fault("nothing to run: give one of run and command", "as in run: ./a.sh", "run", "command")
	default:
		if !slices.Contains(shells, s.Shell) {
			c.fault(fmt.Sprintf("shell %s is not known", quote(s.Shell)), didYouMean(shells, s.Shell), "shell")
		}
		if bad := badText(s.Run); bad != "" {
			c.fault("run "+bad, "", "run")
		}
	}
	for i, a := range s.Command {
		c.argument("command", i, a)
	}
}

// argument checks one text of a list that a program is given. There may be a million of them.
func (c *checker) argument(field string, i int, v string) {
	at := func() string { return fmt.Sprintf("%s[%d]", field, i) }
	if bad := badText(v); bad != "" {
		c.fault(at()+" "+bad, "", at())
	} else if len(v) > maxArgument {
		c.fault(fmt.Sprintf("%s is longer than %d bytes, which Linux gives to no program", at(), maxArgument), "put it into a file", at())
	}
}

func (c *checker) environment(s *task.StageSpec) {
	seen := map[string]bool{}
	for _, kv := range s.Env {
		field := "env." + kv.Name
		if bad := badEnv(kv.Name, kv.Value); bad != "" {
			c.fault("env "+bad, "", field)
		}
		if seen[kv.Name] {
			c.fault(fmt.Sprintf("env %s is there twice", quote(kv.Name)), "", field)
		}
		seen[kv.Name] = true
	}
	for i, p := range s.EnvFiles {
		c.path("env_files", p, fmt.Sprintf("env_files[%d]", i), false)
	}
	if s.Workdir != "" {
		c.path("workdir", s.Workdir, "workdir", true)
	}
}

// badEnv says why a variable cannot be given to a program, "" if it can.
func badEnv(name, value string) string {
	switch {
	case name == "":
		return "has a variable without a name"
	case strings.Contains(name, "="):
		return fmt.Sprintf("%s: a variable's name has no =", quote(name))
	case badText(name) != "" || hasControl(name, false):
		return fmt.Sprintf("%s: a variable's name has no control characters", quote(name))
	case strings.EqualFold(name, "LANJOBS"), len(name) > 7 && strings.EqualFold(name[:8], "LANJOBS_"):
		return fmt.Sprintf("%s: LANJOBS and LANJOBS_… are set by lanjobs itself", quote(name))
	case badText(value) != "":
		return fmt.Sprintf("%s %s", quote(name), badText(value))
	case len(name)+1+len(value) > maxArgument:
		return fmt.Sprintf("%s is longer than %d bytes, which Linux gives to no program", quote(name), maxArgument)
	}
	return ""
}

// path checks a path on the machine that will run it: absolute, or made so by a variable where those are expanded.
func (c *checker) path(what, v, field string, variables bool) {
	hint := "write the full path; ~ and relative ones mean something else on each machine"
	switch bad := badText(v); {
	case bad != "":
		c.fault(what+" "+bad, "", field)
	case len(v) > 4096:
		c.fault(what+" is longer than 4096 bytes", "", field)
	case !absolute(v) && !(variables && strings.HasPrefix(v, "${")):
		c.fault(fmt.Sprintf("%s %s is not an absolute path", what, quote(v)), hint, field)
	}
}

// lease checks that an attempt can be stopped within the last third of its lease, and that two renewals may fail.
func (c *checker) lease(t task.LeaseTerms) {
	c.length("lease.ttl", t.TTL, task.MinTTL, task.MaxTTL)
	third := t.TTL / 3
	hint := fmt.Sprintf("at most %s, or a longer lease.ttl", FormatLength(third))
	switch {
	case t.Heartbeat < minHeartbeat:
		c.fault(fmt.Sprintf("lease.heartbeat %s is less than %s", FormatLength(t.Heartbeat), FormatLength(minHeartbeat)), "", "lease.heartbeat", "lease.ttl")
	case t.Heartbeat > third:
		c.fault(fmt.Sprintf("lease.heartbeat %s is more than a third of lease.ttl %s", FormatLength(t.Heartbeat), FormatLength(t.TTL)), hint, "lease.heartbeat", "lease.ttl")
	}
	switch {
	case t.StopGrace < 0:
		c.length("stop_grace", t.StopGrace, 0, third)
	case t.StopGrace > third:
		c.fault(fmt.Sprintf("stop_grace %s is more than a third of lease.ttl %s", FormatLength(t.StopGrace), FormatLength(t.TTL)), hint, "stop_grace", "lease.ttl")
	}
	c.between("lease.max_renew_failures", t.MaxRenewFailures, 0, maxRetries)
}

func (c *checker) retry(p task.RetryPolicy) {
	c.between("retry.attempts", p.Attempts, 1, maxRetries)
	c.between("retry.lease_losses", p.LeaseLosses, 1, maxRetries)
	c.between("retry.jitter", p.JitterPct, 0, 100)
	c.length("retry.initial", p.Initial, 0, MaxLength)
	c.length("retry.max", p.Max, 0, MaxLength)
	if p.Max < p.Initial {
		c.fault(fmt.Sprintf("retry.max %s is less than retry.initial %s", FormatLength(p.Max), FormatLength(p.Initial)),
			"write max: "+FormatLength(p.Initial)+" or more", "retry.max", "retry.initial")
	}
	if !(p.Factor >= 1 && p.Factor <= 100) { // so written, no number at all is refused too
		c.fault(fmt.Sprintf("retry.factor %v is not from 1 to 100", p.Factor), "", "retry.factor")
	}
	c.codes("retry.permanent_on", p.PermanentOn)
	c.codes("retry.elsewhere_on", p.ElsewhereOn)
}

// codes checks a list of exit codes.
func (c *checker) codes(field string, codes []int) {
	if len(codes) > 256 {
		c.fault(field+" has more than 256 exit codes", "", field)
		return
	}
	for i, code := range codes {
		at := fmt.Sprintf("%s[%d]", field, i)
		if code < 1 || code > maxExitCode {
			c.fault(fmt.Sprintf("%s %d is not the exit code of a failure", field, code), "from 1", at)
		} else if slices.Contains(codes[:i], code) {
			c.fault(fmt.Sprintf("%s has %d twice", field, code), "", at)
		}
	}
}
