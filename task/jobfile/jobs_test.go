package jobfile

import (
	"os"
	"path/filepath"
	"testing"
)

// The job files that the manual sends people to are taken as they lie there.
func TestJobFilesOfTheManual(t *testing.T) {
	dir := filepath.Join("..", "..", "testdata", "jobs")
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spec, faults := Load(file, data, Options{Dir: dir, FS: os.DirFS, Now: noon.Now})
		if spec == nil {
			t.Error(Render(file, faults))
			continue
		}
		accepted(t, spec)
	}
}
