package runner

import (
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"lanjobs/task"
)

// The environment of a command, later lines winning over earlier ones:
//
//  1. passed on from the node, if set there, else from the user database: PATH HOME USER LOGNAME SHELL LANG TMPDIR TZ,
//     on Windows also what programs need to start at all (see passedOn). Nothing else of the daemon's environment.
//     LANG always names UTF-8: C.UTF-8 (en_US.UTF-8 on macOS) unless the node's own does.
//  2. env_files: KEY=value lines on this machine, in the order given
//  3. env of the job file, in the order given; ${NAME} of what stands above (or earlier in it) is replaced
//  4. LANJOBS=1 and LANJOBS_… (UX 3), all of them always set, if only to ""
//
// PATH then begins with the folder of the lanjobs binary, so that `lanjobs task …` is this very version. PWD is the working directory.

// vars is an environment under construction. On Windows names differ only by more than case.
type vars struct {
	index map[string]int
	list  []task.KV
}

func (v *vars) set(name, value string) {
	if i, ok := v.index[varKey(name)]; ok {
		v.list[i].Value = value
		return
	}
	v.index[varKey(name)] = len(v.list)
	v.list = append(v.list, task.KV{Name: name, Value: value})
}

func (v *vars) get(name string) (string, bool) {
	i, ok := v.index[varKey(name)]
	if !ok {
		return "", false
	}
	return v.list[i].Value, true
}

func (v *vars) environ() []string {
	out := make([]string, len(v.list))
	for i, kv := range v.list {
		out[i] = kv.Name + "=" + kv.Value
	}
	return out
}

func varKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// expand replaces ${NAME} where NAME is set. Everything else stays byte for byte: a lone $, $NAME, $(…) and names that are not
// set belong to whoever reads the text next (C57). What was put in is not looked at again.
func (v *vars) expand(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	var b strings.Builder
	for {
		at := strings.Index(s, "${")
		if at < 0 {
			break
		}
		name, rest, closed := strings.Cut(s[at+2:], "}")
		value, ok := v.get(name)
		if !closed || !ok {
			b.WriteString(s[:at+2])
			s = s[at+2:]
			continue
		}
		b.WriteString(s[:at])
		b.WriteString(value)
		s = rest
	}
	b.WriteString(s)
	return b.String()
}

// buildEnv makes a command's environment; base comes from baseEnv. Faults of env files are start failures.
func buildEnv(base []task.KV, exe string, stage *task.StageSpec, own []task.KV) (*vars, error) {
	v := &vars{index: make(map[string]int, 48), list: make([]task.KV, 0, 48)}
	for _, kv := range base {
		v.set(kv.Name, kv.Value)
	}
	for _, path := range stage.EnvFiles {
		if err := v.readFile(path); err != nil {
			return nil, err
		}
	}
	for _, kv := range own { // visible in env …
		v.set(kv.Name, kv.Value)
	}
	for _, kv := range stage.Env {
		v.set(kv.Name, v.expand(kv.Value))
	}
	for _, kv := range own { // … and not to be changed by it
		v.set(kv.Name, kv.Value)
	}
	if path, _ := v.get("PATH"); exe != "" {
		v.set("PATH", firstInPath(filepath.Dir(exe), path))
	}
	return v, nil
}

func firstInPath(dir, path string) string {
	sep := string(os.PathListSeparator)
	if path == dir || strings.HasPrefix(path, dir+sep) {
		return path
	}
	return strings.TrimSuffix(dir+sep+path, sep)
}

// passedOn are the names taken over from the node's own environment.
func passedOn() []string {
	names := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ"}
	if runtime.GOOS == "windows" {
		names = append(names, "SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERNAME", "USERPROFILE",
			"HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles", "ProgramFiles(x86)",
			"CommonProgramFiles", "PSModulePath", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS")
	}
	return names
}

// baseEnv is part 1 of the environment, the same for all attempts. It does not depend on how the node was started: service managers
// give next to nothing, so what is missing comes from the user database (C60).
func baseEnv(getenv func(string) string) []task.KV {
	var out []task.KV
	add := func(name, value string) {
		if value != "" {
			out = append(out, task.KV{Name: name, Value: value})
		}
	}
	fallback := map[string]string{"PATH": defaultPath(), "TMPDIR": os.TempDir()}
	if u, err := user.Current(); err == nil {
		fallback["HOME"], fallback["USER"], fallback["LOGNAME"] = u.HomeDir, u.Username, u.Username
	}
	for _, name := range passedOn() {
		value := getenv(name)
		if value == "" && runtime.GOOS != "windows" {
			value = fallback[name]
		}
		add(name, value)
	}
	if runtime.GOOS != "windows" {
		add("LANG", utf8Locale(getenv("LANG")))
	}
	return out
}

func utf8Locale(lang string) string {
	if upper := strings.ToUpper(lang); strings.HasSuffix(upper, "UTF-8") || strings.HasSuffix(upper, "UTF8") {
		return lang
	}
	if runtime.GOOS == "darwin" {
		return "en_US.UTF-8"
	}
	return "C.UTF-8"
}

func defaultPath() string {
	if runtime.GOOS == "darwin" {
		return "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// plainName tells whether a name may become part of a path.
func plainName(s string) bool {
	return s != "" && len(s) <= 64 && !slices.ContainsFunc([]byte(s), func(c byte) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
}
