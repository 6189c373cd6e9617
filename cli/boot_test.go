package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// bootless are the packages to which a boot clock means nothing, since what they say is heard on other machines or read after
// the next start (I9).
var bootless = []string{"lanjobs/fsm", "lanjobs/transport", "lanjobs/node/plan", "lanjobs/node/leader", "lanjobs/node/api", "lanjobs/node/observe"}

// bootTypes are all types that may hold a boot value. None of them is written to disk or sent to another machine.
var bootTypes = map[string][]string{
	"lanjobs/task":        {"Deadlines"},
	"lanjobs/task/runner": {"attempt", "target", "guarded", "Held", "TaskClient", "message"}, // message: from the agent to its own guard
	"lanjobs/node/worker": {"attempt", "stopping", "book", "flight", "extension", "shortLease", "gapWatch"},
}

func TestBootClocksStayOnTheirMachine(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(bootless, p.ImportPath) && mentionsBoot(f) {
				t.Errorf("%s/%s speaks of a boot clock: it means nothing on another machine (I9)", p.ImportPath, name)
			}
			if holders, limited := bootTypes[p.ImportPath]; limited {
				for _, typ := range holdsBoot(f) {
					if !slices.Contains(holders, typ) {
						t.Errorf("%s.%s holds a boot value: it must never be stored or sent (I9); add it to the list if it is not", p.ImportPath, typ)
					}
				}
			}
		}
	}
}

// mentionsBoot tells whether a syntax tree names the boot clock or what is counted on it.
func mentionsBoot(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && (id.Name == "Boot" || id.Name == "Deadlines") {
			found = true
		}
		return !found
	})
	return found
}

// holdsBoot lists the struct types of a file with a field of such a type.
func holdsBoot(f *ast.File) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				if mentionsBoot(field.Type) {
					names = append(names, spec.Name.Name)
				}
			}
		}
		return false
	})
	return names
}
