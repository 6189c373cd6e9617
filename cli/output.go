package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	yaml "go.yaml.in/yaml/v4"

	"lanjobs/task"
)

// answer is what a command has to show, in every form it may be asked for.
type answer struct {
	value any      // for json and yaml: a view, or a task.List
	items []any    // the elements of a list, for JSON lines; nil for a single view
	names []string // for name
	head  []string // lines above the table
	table table    // for table
	wide  table    // for wide; the zero value = as table
	more  []table  // below it
	gap   bool     // an empty line between tables
	foot  []string // lines below it
}

// show writes an answer in the form asked for.
func (c *call) show(a answer) error {
	switch c.opt.output {
	case "json":
		return writeJSON(c.stdout, a.value, "  ")
	case "yaml":
		text, err := toYAML(a.value)
		if err != nil {
			return err
		}
		_, err = c.stdout.Write(text)
		return err
	case "name":
		for _, n := range a.names {
			if _, err := fmt.Fprintln(c.stdout, n); err != nil {
				return err
			}
		}
		return nil
	}
	return c.out().print(c.frame(a)...)
}

// frame is an answer as lines.
func (c *call) frame(a answer) []string {
	s := c.out()
	var lines []string
	for _, l := range a.head {
		lines = append(lines, s.overlong(l)...)
	}
	for i, t := range c.tablesOf(a) {
		if a.gap && i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, s.lines(t)...)
	}
	for _, l := range a.foot {
		lines = append(lines, s.overlong(l)...)
	}
	return lines
}

// tablesOf are the tables of an answer that have rows.
func (c *call) tablesOf(a answer) []table {
	first := a.table
	if c.opt.output == "wide" && len(a.wide.head) > 0 {
		first = a.wide
	}
	var out []table
	for _, t := range append([]table{first}, a.more...) {
		if len(t.rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (c *call) out() *screen { return screenOf(c.world, c.stdout, c.outTTY, c.opt.color) }
func (c *call) err() *screen { return screenOf(c.world, c.stderr, c.errTTY, c.opt.color) }

// say writes a hint or progress for the person: to standard error, not with -q.
func (c *call) say(format string, args ...any) {
	if !c.opt.quiet {
		fmt.Fprintln(c.stderr, c.err().text(fmt.Sprintf(format, args...)))
	}
}

// done says what was done, as data is not what the command is for: to standard output, in words or as JSON.
func (c *call) done(view any, names []string, format string, args ...any) error {
	return c.show(answer{value: view, names: names, head: []string{fmt.Sprintf(format, args...)}})
}

// machine tells whether the output is for programs.
func (c *call) machine() bool { return c.opt.output == "json" || c.opt.output == "yaml" }

func writeJSON(w interface{ Write([]byte) (int, error) }, v any, indentation string) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", indentation)
	return e.Encode(v)
}

// toYAML goes through JSON, so that both have the same names and the same order.
func toYAML(v any) ([]byte, error) {
	var text bytes.Buffer
	if err := writeJSON(&text, v, ""); err != nil {
		return nil, err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text.Bytes(), &n); err != nil {
		return nil, err
	}
	block(&n)
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&n); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// block undoes the braces and quotes of JSON; the writer puts quotes back where a text would be read as something else.
func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}

// anys makes JSON lines possible for any list.
func anys[T any](items []T) []any {
	out := make([]any, len(items))
	for i := range items {
		out[i] = items[i]
	}
	return out
}

// list is the envelope of a list that was gathered or filtered here.
func list[T any](kind string, index uint64, items []T) task.List[T] {
	if items == nil {
		items = []T{}
	}
	return task.List[T]{Kind: kind, Index: index, Items: items}
}
