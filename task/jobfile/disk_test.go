package jobfile

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// The other tests have no real disk, and so no links, modes and pipes.
func TestOnARealDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and modes are another matter there")
	}
	dir := t.TempDir()
	write := func(name string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("run.sh", 0o755)
	write("in/a.jpg", 0o644)
	write("in/deep/b.jpg", 0o644)
	for name, target := range map[string]string{"in/link.jpg": "a.jpg", "in/broken.jpg": "nowhere", "in/round": "..", "shortcut": "in"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{
		"in/**/*.jpg":    {"in/a.jpg", "in/deep/b.jpg", "in/link.jpg"}, // round is not followed
		"shortcut/*.jpg": {"shortcut/a.jpg", "shortcut/link.jpg"},
		dir + "/in/a.*":  {dir + "/in/a.jpg"},
	} {
		spec, faults := Load("x", []byte(hello+"files: [run.sh]\nshards: {files: [\""+pattern+"\"]}\n"), Options{Dir: dir, FS: os.DirFS})
		if spec == nil {
			t.Errorf("%s: %v", pattern, faults)
			continue
		}
		if got := spec.Stages[0].Items; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
		if f := spec.Files[0]; f.Mode&0o100 == 0 || string(f.Data) != "run.sh" {
			t.Errorf("sent as %+v", f)
		}
	}
}
