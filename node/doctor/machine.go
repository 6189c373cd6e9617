package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"lanjobs/task"
)

// What a disk must have.
const (
	freeBad  = 200   // MB: the log of the cluster needs room to be written anew
	freeWarn = 2_000 // MB
	syncWarn = 200 * time.Millisecond
	syncBad  = time.Second // an election's time
)

func disk(f *Facts) task.Finding {
	d := f.Disk
	where := "data folder on " + cmp.Or(d.System, "an unknown file system")
	if d.Network {
		return bad(where+", a network share: the log of the cluster needs memory maps and locks", "Move the folder to a disk of this machine: --data-dir DIR")
	}
	if d.Err != nil {
		return bad(fmt.Sprintf("%s cannot be written: %v", f.Folder.Path, d.Err), "Mend that, then try again")
	}
	text, p99 := where, percentile(d.Syncs)
	if len(d.Syncs) > 0 {
		text += fmt.Sprintf(", fsync p99 %s (%d writes)", round(p99), len(d.Syncs))
	}
	text += fmt.Sprintf("; %s free", megabytes(d.FreeMB))
	switch {
	case d.FreeMB < freeBad:
		return bad(text, "Make room: below 200 MB the node may stop")
	case p99 > syncBad:
		return bad(text, "Use a faster disk, or serve --tempo 3 on every machine")
	case d.FreeMB < freeWarn:
		return warn(text, "Make room")
	case p99 > syncWarn:
		return warn(text, "Use a faster disk, or serve --tempo 2 on every machine")
	}
	return ok(text)
}

// percentile is the 99th of sorted lengths.
func percentile(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*99-1)/100]
}

func round(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

func megabytes(mb int) string {
	if mb >= 10_000 {
		return fmt.Sprintf("%d GB", mb/1000)
	}
	return fmt.Sprintf("%d MB", mb)
}

func folder(f *Facts) task.Finding {
	switch {
	case f.Folder.Mode == 0:
		return ok(f.Folder.Path + " is not there yet")
	case f.OS != "windows" && f.Folder.Mode.Perm()&0o077 != 0:
		return bad(fmt.Sprintf("%s is open to other users (%#o): it holds this machine's key", f.Folder.Path, f.Folder.Mode.Perm()), "chmod 700 "+f.Folder.Path+"   or: lanjobs doctor --fix")
	}
	return ok(f.Folder.Path + " is its owner's alone")
}

func paths(f *Facts) task.Finding {
	n := len(f.Folder.Socket)
	text := fmt.Sprintf("socket path %d of %d bytes", n, f.Folder.Most)
	if n > f.Folder.Most {
		return bad(text, "Choose a shorter --data-dir")
	}
	return ok(text)
}

func sleep(f *Facts) task.Finding {
	s := f.Sleep
	voter := f.Node != nil && f.Node.Seat
	switch {
	case !s.Known:
		return unknown("cannot tell whether this machine sleeps when idle (" + s.How + ")")
	case !s.Sleeps:
		return ok("does not sleep when idle (" + s.How + ")")
	}
	after := ""
	if s.After > 0 {
		after = " after " + strings.TrimSuffix(s.After.String(), "0s") + " idle"
	}
	if !voter {
		return warn("sleeps"+after+" ("+s.How+"): its work moves to other machines", awake(f.OS))
	}
	return bad("this voter sleeps"+after+" ("+s.How+")", awake(f.OS)+"   or: lanjobs node demote "+f.Node.Name)
}

// awake is how a machine is kept from sleeping.
func awake(goos string) string {
	switch goos {
	case "darwin":
		return "sudo pmset -a sleep 0"
	case "windows":
		return "powercfg /change standby-timeout-ac 0"
	}
	return "sudo systemctl mask sleep.target suspend.target hibernate.target"
}

// keptAwake tells whether lanjobs can keep the machine from sleeping under a task. Where it does not sleep by itself it need not.
func keptAwake(f *Facts) task.Finding {
	how, held := strings.CutPrefix(f.Node.Awake, "held: ")
	switch {
	case f.Node.Awake == "":
		return ok("is kept awake while tasks run")
	case held:
		return ok("is kept awake now, while tasks run (" + how + ")")
	}
	text := "is not kept awake while tasks run (" + f.Node.Awake + ")"
	if !f.Sleep.Sleeps && (f.Sleep.Known || !f.Node.Laptop) {
		return ok(text + "; it is not known to sleep when idle")
	}
	fix := ""
	switch {
	case strings.HasPrefix(f.Node.Awake, "cannot be held"):
		fix = awake(f.OS)
	case strings.HasPrefix(f.Node.Awake, "never held"):
		fix = "Its owner may allow it: lanjobs serve --inhibit mains"
	case strings.HasPrefix(f.Node.Awake, "not held: on battery"):
		fix = "Plug it in, or its owner allows it: lanjobs serve --inhibit always"
	}
	return warn(text+": its work moves to other machines when it sleeps", fix)
}

func zones(f *Facts) task.Finding {
	if f.Zones != nil {
		return bad(fmt.Sprintf("time zones cannot be read: %v", f.Zones), "Use a binary of a release: it has them inside")
	}
	return ok("time zone data are there")
}

func quarantine(f *Facts) task.Finding {
	if f.Quarantined {
		return warn("macOS has "+f.Program+" in quarantine: it may refuse to run it", "xattr -d com.apple.quarantine "+f.Program+"   or: lanjobs doctor --fix")
	}
	return ok("the program is not in quarantine")
}

func service(f *Facts) task.Finding {
	switch {
	case f.Node.Service:
		return ok("a service manager runs it: it starts with the machine")
	case f.Node.First:
		return ok("it is the first process of its container")
	}
	fix := "sudo lanjobs service install   or: lanjobs service install --user"
	if f.OS == "windows" {
		fix = "As administrator: lanjobs service install"
	}
	return warn("started by hand: it does not survive a restart of this machine", fix)
}

func limits(f *Facts) task.Finding {
	l := f.Node.Limits
	switch {
	case l == "":
		return unknown("not told yet whether the limits of job files are enforced")
	case strings.HasPrefix(l, "not enforced"):
		return warn("limits of job files are "+l, limitsFix(f))
	}
	return ok("limits of job files are enforced (" + l + ")")
}

func limitsFix(f *Facts) string {
	if f.OS == "linux" && !f.Node.Service && !strings.Contains(f.Node.Limits, "controllers") && !strings.Contains(f.Node.Limits, "no control groups") {
		return "sudo lanjobs service install gives it control groups of its own"
	}
	return ""
}
