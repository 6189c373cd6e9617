//go:build e2e && linux

package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// TestProcTranscode is the model case with real files: three machines encode a clip in pieces, one of them loses its power in the
// middle of a piece, and another goes on at its last checkpoint. The film has its length and every frame (R25, R26).
func TestProcTranscode(t *testing.T) {
	for _, program := range []string{"ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not here: apt-get install ffmpeg", program)
		}
	}
	t.Parallel()
	const seconds, piece = 24, 8
	l := cluster(t)
	share := t.TempDir()
	source, err := os.ReadFile(filepath.Join("..", "testdata", "jobs", "transcode.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := strings.NewReplacer(
		"SHARE: /tmp, SECONDS_IN_ALL: \"12\", PIECE: \"3\"", fmt.Sprintf("SHARE: %q, SECONDS_IN_ALL: \"%d\", PIECE: \"%d\"", share, seconds, piece),
		"timeout: 1h\n", "timeout: 1h\n"+lease(shortLease)+"\n").Replace(string(source))
	if file == string(source) {
		t.Fatal("the file has changed: adapt the test")
	}
	id := l.submit(l.nodes[0], file)

	leader := l.leader()
	// A piece of another machine than the leader that was saved at least once and goes on.
	half := func(asked *member, on string) (cut task.ShardView, ok bool) {
		for _, sh := range l.shards(asked, id) {
			if sh.Stage == "encode" && sh.State == "running" && sh.CheckpointSeq >= 1 && sh.CheckpointSeq < piece && sh.NodeName != leader.name && (on == "" || sh.NodeName == on) {
				return sh, true
			}
		}
		return cut, false
	}
	var lost *member
	l.waitFor(90*time.Second, "a piece is half done", func() bool {
		cut, ok := half(l.nodes[0], "")
		if ok = ok && cut.CheckpointSeq < piece-2; ok {
			lost = l.node(cut.NodeName)
		}
		return ok
	})
	lost.poweroff()
	asked := l.others(lost)[0]
	var cut task.ShardView // as it stands now that nothing changes it any more
	l.waitFor(30*time.Second, "the piece of "+lost.name+" is seen", func() (ok bool) { cut, ok = half(asked, lost.name); return ok })
	l.ends(asked, id, task.JobSucceeded, 5*time.Minute)
	film := filepath.Join(share, "transcode-"+id+".mkv")
	probe, err := exec.Command("ffprobe", "-v", "error", "-count_packets", "-select_streams", "v",
		"-show_entries", "stream=nb_read_packets:format=duration", "-of", "default=noprint_wrappers=1", film).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", film, err, probe)
	}
	if want := fmt.Sprintf("nb_read_packets=%d", seconds*25); !strings.Contains(string(probe), want) || !strings.Contains(string(probe), fmt.Sprintf("duration=%d.", seconds)) {
		t.Errorf("want %s and %d seconds, got\n%s", want, seconds, probe)
	}
	for _, sh := range l.shards(asked, id) {
		if sh.Stage != "encode" || sh.Shard != cut.Shard {
			continue
		}
		if sh.Attempt < 2 || sh.NodeName == lost.name || sh.CheckpointSeq != piece {
			t.Errorf("piece %d ended with attempt %d on %s at checkpoint %d", sh.Shard, sh.Attempt, sh.NodeName, sh.CheckpointSeq)
		}
		if names := len(sh.Outputs); names != piece {
			t.Errorf("piece %d has %d parts: %v", sh.Shard, names, sh.Outputs)
		}
	}
}
