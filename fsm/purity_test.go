package fsm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// allowedImports are all that the ledger may use, each for a reason. What is not here needs one: nothing that reads a clock, a
// file, the network or chance, nothing that waits, and nothing that could differ from one replica to the next.
var allowedImports = map[string]string{
	"bufio":           "snapshots are streamed",
	"bytes":           "copies and comparisons",
	"cmp":             "comparisons that do not overflow",
	"container/heap":  "shards that wait for their time",
	"crypto/sha256":   "digests",
	"encoding/binary": "varints",
	"encoding/json":   "specs, as the job file gave them",
	"errors":          "sentinels",
	"fmt":             "messages for people; it prints maps sorted",
	"io":              "snapshots are streamed",
	"math":            "bounds of numbers",
	"math/bits":       "the set of ready shards",
	"slices":          "sorting and searching",
	"strconv":         "numbers in messages",
	"strings":         "copies and comparisons",
	"unicode/utf8":    "texts are cut between characters",
	"lanjobs/task":    "the words and the pure rules",
}

// allowedMapRanges are the functions that may range over a map, each with why the order does not matter.
var allowedMapRanges = map[string]string{
	"State.heldBy":     "sorts what it gathers, one half in free",
	"State.Lapsed":     "sorts what it gathers; the leader's, not Apply's",
	"State.tightenDue": "takes the least",
	"State.countRuns":  "adds up",
	"State.index":      "adds up",
	"checker.sums":     "adds up",
	"State.LeasesOf":   "says so; the leader's, not Apply's",
	"State.Leases":     "says so; the leader's, not Apply's",
}

func TestTheLedgerIsPure(t *testing.T) {
	fset := token.NewFileSet()
	files := parse(t, fset, ".")
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	check(t, fset, "lanjobs/fsm", files, info)
	ranged := map[string]bool{}
	for _, f := range files {
		checkImports(t, fset, f, allowedImports)
		for _, d := range f.Decls {
			checkDecl(t, fset, d, info, ranged)
		}
	}
	for name := range allowedMapRanges {
		if !ranged[name] {
			t.Errorf("%s ranges over no map any more: take it off the list", name)
		}
	}
}

// TestWhatTheLedgerUsesIsPure looks at package task, whose rules decide as much as Apply does.
func TestWhatTheLedgerUsesIsPure(t *testing.T) {
	allowed := map[string]string{"time": "lengths for others, and the Clock interface; the ledger uses lengths in messages alone", "encoding/hex": "long shard keys end in a hash"}
	for name, why := range allowedImports {
		allowed[name] = why
	}
	fset := token.NewFileSet()
	for _, f := range parse(t, fset, "../task") {
		checkImports(t, fset, f, allowed)
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := c.X.(*ast.Ident); ok && x.Name == "time" {
					switch c.Sel.Name {
					case "Duration", "Time", "Millisecond", "Second", "Minute", "Hour", "UTC", "UnixMilli", "RFC3339":
					default:
						t.Errorf("%s: time.%s in a package of pure rules", fset.Position(n.Pos()), c.Sel.Name)
					}
				}
			}
			return true
		})
	}
}

// parse reads the product files of a folder.
func parse(t *testing.T, fset *token.FileSet, dir string) (files []*ast.File) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// check finds out the types of one package. Of others it knows package task alone: the standard library need not be read to
// see which of our own values are maps.
func check(t *testing.T, fset *token.FileSet, path string, files []*ast.File, info *types.Info) *types.Package {
	conf := types.Config{Error: func(error) {}, Importer: importFunc(func(path string) (*types.Package, error) {
		if path == "lanjobs/task" {
			return check(t, fset, path, parse(t, fset, "../task"), nil), nil
		}
		p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
		p.MarkComplete()
		return p, nil
	})}
	p, _ := conf.Check(path, fset, files, info)
	return p
}

type importFunc func(string) (*types.Package, error)

func (f importFunc) Import(path string) (*types.Package, error) { return f(path) }

func checkImports(t *testing.T, fset *token.FileSet, f *ast.File, allowed map[string]string) {
	for _, spec := range f.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); allowed[path] == "" {
			t.Errorf("%s: import of %s: the ledger may not", fset.Position(spec.Pos()), path)
		}
	}
}

func checkDecl(t *testing.T, fset *token.FileSet, d ast.Decl, info *types.Info, ranged map[string]bool) {
	name := ""
	if f, ok := d.(*ast.FuncDecl); ok {
		name = f.Name.Name
		if f.Recv != nil {
			recv := f.Recv.List[0].Type
			if star, ok := recv.(*ast.StarExpr); ok {
				recv = star.X
			}
			if id, ok := recv.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
			t.Errorf("%s: %T: nothing in the ledger runs beside Apply", fset.Position(n.Pos()), n)
		case *ast.RangeStmt:
			typ := info.TypeOf(n.X)
			if typ == nil || typ.Underlying() == types.Typ[types.Invalid] {
				t.Errorf("%s: this test cannot see what is ranged over: give it a name with a type first", fset.Position(n.Pos()))
			} else if _, isMap := typ.Underlying().(*types.Map); isMap {
				ranged[name] = true
				if allowedMapRanges[name] == "" {
					t.Errorf("%s: %s ranges over a map: sort, or say in allowedMapRanges why the order does not matter", fset.Position(n.Pos()), name)
				}
			}
		case *ast.CallExpr:
			// maps.Keys and the like are not importable; %v of a pointer would print an address, which no event may hold.
			if lit, ok := firstString(n); ok && strings.Contains(lit, "%p") {
				t.Errorf("%s: an address differs from replica to replica", fset.Position(n.Pos()))
			}
		}
		return true
	})
}

func firstString(c *ast.CallExpr) (string, bool) {
	for _, a := range c.Args {
		if l, ok := a.(*ast.BasicLit); ok && l.Kind == token.STRING {
			return l.Value, true
		}
	}
	return "", false
}
