package cli_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkg is what `go list` tells of a package.
type pkg struct {
	ImportPath, Dir, Doc string
	Imports              []string
	GoFiles              []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,Imports,GoFiles", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// may says which packages of lanjobs a package may import, and why not others.
var may = []struct {
	pkg     string
	imports []string
	why     string
}{
	{"lanjobs", []string{"lanjobs/cli"}, "main starts the mouth and nothing else"},
	{"lanjobs/task", nil, "task is the language: a leaf that everybody may speak"},
	{"lanjobs/task/jobfile", []string{"lanjobs/task", "lanjobs/task/schedule"}, "a job file becomes a Spec, whoever reads it"},
	{"lanjobs/task/schedule", []string{"lanjobs/task"}, "the calendar is told the time and what was fired; it knows no cluster"},
	{"lanjobs/task/runner", []string{"lanjobs/task"}, "a runner knows one attempt on this machine, not the cluster"},
	{"lanjobs/task/runner/logindtest", nil, "a login manager for tests"},
	{"lanjobs/fsm", []string{"lanjobs/task"}, "the ledger is pure: what it imports, every replica and every replay must agree on"},
	{"lanjobs/transport", []string{"lanjobs/task", "lanjobs/transport/pake"}, "the wire carries messages and knows no jobs"},
	{"lanjobs/transport/pake", nil, "an exchange is a function of messages: what it rests on can be read in one place"},
	{"lanjobs/transport/memnet", []string{"lanjobs/task", "lanjobs/transport"}, "a network for tests"},
	{"lanjobs/node/plan", []string{"lanjobs/task", "lanjobs/task/schedule", "lanjobs/fsm"}, "a plan is a function of what is known"},
	{"lanjobs/node/simulate", []string{"lanjobs/task", "lanjobs/fsm", "lanjobs/node/plan"}, "a scenario is played by the ledger and the plan alone"},
	{"lanjobs/node/leader", []string{"lanjobs/task", "lanjobs/fsm", "lanjobs/node/plan", "lanjobs/transport"}, "leader and worker meet over transport only, also on one machine"},
	{"lanjobs/node/bell", nil, "a bell is rung and heard, for whatever reason"},
	{"lanjobs/node/worker", []string{"lanjobs/task", "lanjobs/task/runner", "lanjobs/transport", "lanjobs/node/bell"}, "leader and worker meet over transport only, also on one machine"},
	{"lanjobs/node/observe", []string{"lanjobs/task", "lanjobs/node/bell"}, "the audit log takes events, whatever made them"},
	{"lanjobs/node/api", []string{"lanjobs/task", "lanjobs/task/jobfile", "lanjobs/task/schedule", "lanjobs/fsm", "lanjobs/node/leader", "lanjobs/node/plan", "lanjobs/node/observe", "lanjobs/transport"}, "the API reads the ledger and asks the leader"},
	{"lanjobs/node/doctor", []string{"lanjobs/task"}, "a doctor looks at a machine and judges facts; who gathers those of a cluster is the node's matter"},
	{"lanjobs/node", []string{"lanjobs/node/doctor", "lanjobs/task", "lanjobs/task/runner", "lanjobs/fsm", "lanjobs/transport", "lanjobs/transport/pake", "lanjobs/node/leader", "lanjobs/node/worker", "lanjobs/node/observe", "lanjobs/node/api"}, "node puts the parts together"},
	{"lanjobs/node/clustertest", nil, "only its tests import anything"},
	{"lanjobs/cli/service", nil, "service managers run a command line and know no node"},
	{"lanjobs/cli", []string{"lanjobs/cli/service", "lanjobs/task", "lanjobs/task/jobfile", "lanjobs/task/runner", "lanjobs/transport", "lanjobs/node", "lanjobs/node/simulate"}, "the mouth speaks to a node through the API, or starts one; a simulation needs neither"},
}

func TestImportsFollowTheHouse(t *testing.T) {
	for _, p := range packages(t) {
		i := slices.IndexFunc(may, func(m struct {
			pkg     string
			imports []string
			why     string
		}) bool {
			return m.pkg == p.ImportPath
		})
		if i < 0 {
			t.Errorf("%s is not in the list of who may import whom: add it with its reason", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "lanjobs") && !slices.Contains(may[i].imports, imp) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imp, may[i].why)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && p.ImportPath != "lanjobs/node/clustertest" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

// clockless are the packages in which only a task.Clock tells the time; each exception with its reason.
var clockless = map[string][]string{
	"lanjobs/fsm": nil, "lanjobs/task": nil, "lanjobs/task/schedule": nil, "lanjobs/node": nil, "lanjobs/node/plan": nil, "lanjobs/node/simulate": nil, "lanjobs/node/leader": nil, "lanjobs/node/worker": nil,
	"lanjobs/node/observe": nil, "lanjobs/node/api": nil, "lanjobs/node/doctor": nil, "lanjobs/transport": {"gossipwire.go"}, // memberlist asks for the arrival time of packets
	"lanjobs/task/jobfile": nil, "lanjobs/transport/pake": nil,
	"lanjobs/task/runner": {"clock.go", "clock_linux.go"}, // the clock itself
}

// bounded are the files of these packages in which a context may count on Go's own clock: its seconds bound a question of which nothing
// hangs on when it is given up.
var bounded = map[string][]string{"lanjobs/task/runner": {"logind_linux.go", "taskguard.go"}}

func TestTimeComesFromTheClock(t *testing.T) {
	forbidden := map[string][]string{
		"time":    {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
		"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	}
	for _, p := range packages(t) {
		except, checked := clockless[p.ImportPath]
		if !checked {
			continue
		}
		for _, name := range p.GoFiles {
			if slices.Contains(except, name) {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					x, ok := s.X.(*ast.Ident)
					if ok && slices.Contains(forbidden[x.Name], s.Sel.Name) && !(x.Name == "context" && slices.Contains(bounded[p.ImportPath], name)) {
						t.Errorf("%s/%s uses %s.%s: hand it a task.Clock (a deadline on Go's own clock stands still in sleep)", p.ImportPath, name, x.Name, s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
