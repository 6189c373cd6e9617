package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	urfave "github.com/urfave/cli/v2"
)

// TestMain registers the program, so that scripts run it as a process of its own.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "lanjobs" { // in a script it is set on purpose
		for _, f := range commonFlags(^takes(0)) {
			for _, name := range f.(urfave.DocGenerationFlag).GetEnvVars() {
				os.Unsetenv(name)
			}
		}
	}
	time.Local = time.UTC // what people see is local time; golden files need one place
	testscript.Main(m, map[string]func(){
		"lanjobs": func() { os.Exit(Main(os.Args, "0.0.0-test")) },
	})
}

// TestScripts are pages of the manual: commands, and what they print.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "../testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("LANJOBS_DATA_DIR", e.WorkDir+"/data")
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitcode, "eventually": eventually},
		UpdateScripts: *update,
	})
}

// exitcode N CMD… runs a command that must end with code N; the exec of testscript knows success and failure only.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	want := wanted(ts, neg, args)
	if got := runFor(ts, args[1:]); got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

// eventually is exitcode for a command that may have to be repeated.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	want := wanted(ts, neg, args)
	for range 1200 {
		if runFor(ts, args[1:]) == want {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	ts.Fatalf("not with exit %d within 2 minutes", want)
}

func wanted(ts *testscript.TestScript, neg bool, args []string) int {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: N command…")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("%q: not a number", args[0])
	}
	return want
}

func runFor(ts *testscript.TestScript, args []string) int {
	err := ts.Exec(args[0], args[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		ts.Fatalf("%v", err)
	}
	return 0
}
