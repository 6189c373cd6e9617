package cli

import (
	"strings"
	"testing"
)

// Every command that help shows is on the manual page, and none that it hides.
func TestManPageHasEveryCommand(t *testing.T) {
	b := newBench(t)
	b.expect(exitDone, "man")
	page := b.out.String()
	if !strings.Contains(page, ".TH lanjobs 1") {
		t.Errorf("no page of section 1:\n%.200s", page)
	}
	var walk func(g *group, heading string)
	walk = func(g *group, heading string) {
		for _, c := range g.commands {
			has := strings.Contains(page, heading+" "+c.name+"\n"+strings.ReplaceAll(c.short, "-", "\\-"))
			if !has {
				has = strings.Contains(page, heading+" "+c.name+"\n"+c.short)
			}
			if has == c.hidden {
				t.Errorf("%s %s: on the page %v, hidden %v", g.name, c.name, has, c.hidden)
			}
		}
		for _, sub := range g.groups {
			walk(sub, ".SS")
		}
	}
	walk(tree(), ".SH")
}
