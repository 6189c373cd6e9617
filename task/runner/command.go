package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"lanjobs/task"
)

// startError is why a command was not started; code is what a shell would have exited with.
type startError struct {
	code  int
	text  string
	found bool // the program is there, only not to be executed
}

func (e *startError) Error() string { return e.text }

func cannotStart(code int, format string, args ...any) error {
	return &startError{code: code, text: fmt.Sprintf(format, args...)}
}

// maxInlineScript is how long a script may be to be passed as an argument; Linux takes 128 KiB. Longer ones go into a file.
const maxInlineScript = 64 << 10

// shellForm says how a shell is given a script.
type shellForm struct {
	programs []string // the first one there is used
	flags    []string
	inline   string // flag that takes the script itself; "" = always a file
	file     string // flag before the file
	suffix   string // that the shell insists on
}

// shells are the values of `shell` (UX 2.1). A #! line in `run` is a comment to all of them.
var shells = map[string]shellForm{
	"sh":      {programs: []string{"sh"}, flags: []string{"-e"}, inline: "-c"},
	"bash":    {programs: []string{"bash"}, flags: []string{"-e"}, inline: "-c"},
	"zsh":     {programs: []string{"zsh"}, flags: []string{"-e"}, inline: "-c"},
	"pwsh":    {programs: []string{"pwsh", "powershell"}, flags: []string{"-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass"}, file: "-File", suffix: ".ps1"},
	"cmd":     {programs: []string{"cmd"}, flags: []string{"/d"}, file: "/c", suffix: ".cmd"},
	"python3": {programs: []string{"python3"}, suffix: ".py"},
}

// scriptSuffixes are all that a script's file may have, none included.
var scriptSuffixes = sync.OnceValue(func() []string {
	all := []string{""}
	for _, s := range shells {
		if !slices.Contains(all, s.suffix) {
			all = append(all, s.suffix)
		}
	}
	return all
})

// buildCommand resolves the program and its arguments. A script file, if one is needed, is written to scriptBase plus a suffix.
func buildCommand(stage *task.StageSpec, v *vars, dir, scriptBase string) (path string, args []string, err error) {
	if stage.Run == "" {
		args = make([]string, len(stage.Command))
		for i, s := range stage.Command {
			args[i] = v.expand(s)
		}
		if len(args) == 0 || args[0] == "" {
			return "", nil, cannotStart(127, "the command is empty")
		}
		path, err = lookProgram(args[0], v, dir)
		return path, args, err
	}
	name := stage.Shell
	if name == "" || name == "auto" {
		name = "sh"
		if runtime.GOOS == "windows" {
			name = "pwsh"
		}
	}
	shell, ok := shells[name]
	if !ok {
		return "", nil, cannotStart(127, "shell %q is not one of sh, bash, zsh, pwsh, cmd, python3", name)
	}
	if path, err = shell.find(v, dir); err != nil {
		if stage.AsksShell() != "" {
			return "", nil, unmet("shell %s: %v", name, err)
		}
		return "", nil, err
	}
	args, err = shell.arguments(stage.Run, scriptBase)
	return path, args, err
}

func (s shellForm) find(v *vars, dir string) (path string, err error) {
	for _, p := range s.programs {
		if path, err = lookProgram(p, v, dir); err == nil {
			return path, nil
		}
	}
	return "", err
}

func (s shellForm) arguments(script, base string) ([]string, error) {
	args := append([]string{s.programs[0]}, s.flags...)
	script = cleanScript(script, s.suffix == ".cmd")
	if s.inline != "" && len(script) <= maxInlineScript {
		return append(args, s.inline, script), nil
	}
	if s.file != "" {
		args = append(args, s.file)
	}
	return append(args, base+s.suffix), os.WriteFile(base+s.suffix, []byte(script), 0o600)
}

// cleanScript: a script written on Windows must run (C60). cmd alone wants line ends of its own.
func cleanScript(s string, crlf bool) string {
	s = strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r\n", "\n")
	if crlf {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

// lookProgram finds a program as execvp would, in the task's PATH and from its working directory.
func lookProgram(name string, v *vars, dir string) (string, error) {
	if isPath(name) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return executable(path, name, v)
	}
	path, _ := v.get("PATH")
	var denied error
	for _, d := range filepath.SplitList(path) {
		if d == "" || !filepath.IsAbs(d) {
			continue // never the current directory by accident
		}
		found, err := executable(filepath.Join(d, name), name, v)
		if err == nil {
			return found, nil
		}
		if e, ok := errors.AsType[*startError](err); ok && e.found {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", cannotStart(127, "no program %q on PATH (%s)", name, shortPath(path))
}

// longestPath is how much of PATH a message has: enough to see whose it is.
const longestPath = 80

func shortPath(path string) string {
	if len(path) <= longestPath {
		return path
	}
	list := filepath.SplitList(path)
	for i := range list {
		if begin := strings.Join(list[:len(list)-i], string(filepath.ListSeparator)); len(begin) <= longestPath {
			return fmt.Sprintf("%s and %d more", begin, i)
		}
	}
	return fmt.Sprintf("%d directories", len(list))
}

func executable(path, name string, v *vars) (string, error) {
	for _, suffix := range programSuffixes(path, v) {
		info, err := os.Stat(path + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", cannotStart(126, "%s: %v", name, reason(err))
		case info.IsDir():
			return "", cannotStart(126, "%s is a directory", path)
		case !mayExecute(path + suffix):
			return "", &startError{126, path + ": permission denied (not executable)", true}
		default:
			return path + suffix, nil
		}
	}
	return "", cannotStart(127, "no program %s", path)
}

// programSuffixes: Windows finds "git" as git.exe.
func programSuffixes(path string, v *vars) []string {
	if runtime.GOOS != "windows" || filepath.Ext(path) != "" {
		return []string{""}
	}
	ext, ok := v.get("PATHEXT")
	if !ok {
		ext = ".COM;.EXE;.BAT;.CMD"
	}
	return strings.Split(ext, ";")
}
