package jobfile

import (
	"fmt"
	"slices"
	"strings"

	"lanjobs/task"
)

// maxPlaces bounds the entries of each list of placement: a machine looks at all of them before each attempt.
const maxPlaces = 64

// placement checks on which machines a stage may run (R34).
func (c *checker) placement(s *task.StageSpec) {
	for _, l := range []struct {
		field string
		list  []task.Requirement
	}{{"placement.require", s.Require}, {"placement.prefer", s.Prefer}} {
		if c.few(l.field, len(l.list)) {
			for i, r := range l.list {
				if !validRequirement(r) {
					c.fault(fmt.Sprintf("%s %s is not a condition", l.field, quote(r.String())), requireForms, fmt.Sprintf("%s[%d]", l.field, i))
				}
			}
		}
	}
	if c.few("placement.paths", len(s.Paths)) {
		for i, p := range s.Paths {
			field := fmt.Sprintf("placement.paths[%d]", i)
			if strings.Contains(p, "${") {
				c.fault(fmt.Sprintf("placement.paths %s has a variable, which has no value before a machine is chosen", quote(p)), "write the full path", field)
				continue
			}
			c.path("placement.paths", p, field, false)
			c.repeated("placement.paths", s.Paths, i)
		}
	}
	if c.few("placement.programs", len(s.Programs)) {
		for i, p := range s.Programs {
			c.program(p, fmt.Sprintf("placement.programs[%d]", i))
			c.repeated("placement.programs", s.Programs, i)
		}
	}
}

func (c *checker) few(field string, n int) bool {
	if n > maxPlaces {
		c.fault(fmt.Sprintf("%s has more than %d entries", field, maxPlaces), "", field)
	}
	return n <= maxPlaces
}

func (c *checker) repeated(field string, list []string, i int) {
	if slices.Contains(list[:i], list[i]) {
		c.fault(fmt.Sprintf("%s has %s twice", field, quote(list[i])), "", fmt.Sprintf("%s[%d]", field, i))
	}
}

// program checks the name of a program: one word that is looked for on PATH, or an absolute path.
func (c *checker) program(p, field string) {
	const what = "placement.programs"
	switch bad := badText(p); {
	case bad != "":
		c.fault(what+" "+bad, "", field)
	case len(p) > 4096:
		c.fault(what+" is longer than 4096 bytes", "", field)
	case absolute(p) && !hasControl(p, false):
	case p == "" || p == "." || p == ".." || hasControl(p, false) || strings.ContainsAny(p, `/\`) || strings.Contains(p, "${"):
		c.fault(fmt.Sprintf("%s %s is not the name of a program", what, quote(p)), "write ffmpeg, or an absolute path", field)
	case strings.ContainsAny(p, " \t"):
		c.fault(fmt.Sprintf("%s %s has a blank", what, quote(p)), "names of programs only, without arguments: write programs: ["+strings.Join(strings.Fields(p), ", ")+"] if these are several", field)
	}
}

// resources checks what is booked for an attempt (R34). No processors is a Spec from before they were counted.
func (c *checker) resources(r task.Resources) {
	c.between("resources.cpu (in thousandths)", r.MilliCPU, 0, task.MaxMilliCPU)
	c.between("resources.memory (in MiB)", r.MemoryMB, 0, task.MaxResourceMB)
	c.between("resources.disk (in MiB)", r.DiskMB, 0, task.MaxResourceMB)
}
