package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lanjobs/task"
)

func TestJournalSurvivesItsGuard(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g1.journal")
	j, err := createJournal(path, &hello{ID: "g1", Pid: 7, Cgroup: "/c"})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []task.ExecutionID{"x1", "x2", "x3"} {
		if err := j.started(x, []byte(`{"of":"`+string(x)+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.ended("x2", &exitRecord{Code: 3}); err != nil {
		t.Fatal(err)
	}
	if err := j.forget("x3"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.file.WriteString(`E x1 {"code":`); err != nil { // killed in the middle of a line
		t.Fatal(err)
	}
	for range 2 { // the second time as the agent left it
		k, card, err := openJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		if card.ID != "g1" || card.Cgroup != "/c" || len(k.live) != 2 || k.live["x1"].exit != nil || k.live["x2"].exit.Code != 3 ||
			string(k.live["x1"].record) != `{"of":"x1"}` {
			t.Errorf("card %+v, live %+v", card, k.live)
		}
		if err := k.rewrite(); err != nil {
			t.Fatal(err)
		}
		if err := k.close(); err != nil {
			t.Fatal(err)
		}
	}
	k, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []task.ExecutionID{"x1", "x2", "x9"} {
		if err := k.forget(x); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("an empty journal stays")
	}
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestJournalDoesNotGrowWithoutEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g1.journal")
	j, err := createJournal(path, &hello{ID: "g1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.started("x0", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	record := bytes.Repeat([]byte("r"), 1000)
	for i := range 5000 {
		x := task.Token(i + 1).Execution()
		if err := j.started(x, record); err != nil {
			t.Fatal(err)
		}
		if err := j.ended(x, &exitRecord{}); err != nil {
			t.Fatal(err)
		}
		if err := j.forget(x); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 2*journalSlack {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	k, card, err := openJournal(path)
	if err != nil || card.ID != "g1" || len(k.live) != 1 || k.live["x0"] == nil {
		t.Errorf("%v %+v", err, k.live)
	}
	if err := k.file.Close(); err != nil {
		t.Fatal(err)
	}
}

// I9: the record that reaches the journal, and the ends beside it, know no boot clock.
func TestNoBootValueOnDisk(t *testing.T) {
	spec := &task.Spec{Stages: []task.StageSpec{{Name: "main", Shards: 1}}}
	rec, _, err := newRecord(&task.Assignment{Job: "j1", Token: 9, Checkpoint: &task.Checkpoint{Seq: 1, Data: []byte("large")}}, spec, "nas")
	if err != nil {
		t.Fatal(err)
	}
	a := &attempt{record: rec, deadlines: task.Deadlines{Term: 123456789, Kill: 123456789, End: 123456789}, handed: 123456789, stopKill: 123456789}
	blob, err := json.Marshal(a.record)
	if err != nil {
		t.Fatal(err)
	}
	e := guarded{deadlines: a.deadlines, began: 123456789}
	on := string(startLine("x9", blob)) + string(exitLine("x9", &e.status))
	if strings.Contains(on, "123456789") || strings.Contains(on, "large") || !strings.Contains(on, `"Job":"j1"`) {
		t.Errorf("journal: %s", on)
	}
}

// A full disk loses output, says so when it can, and disturbs nothing.
func TestLogOnAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer closeQuietly(full)
	pack := newPack(t)
	w := newLogWriter(pack, "x1")
	w.polls = 2
	w.write(streamOut, []byte("kept\n"))
	disk := w.file
	w.file = full
	w.write(streamOut, []byte("lost 1\n"))
	w.write(streamErr, []byte("lost 22\n"))
	w.file = disk
	w.write(streamOut, []byte("again\n"))
	w.close()
	got := readAll(t, pack.dir, "x1", streamBoth)
	if !strings.HasPrefix(got, "kept\n[lanjobs: 15 bytes of output could not be stored:") || !strings.HasSuffix(got, "\nagain\n") {
		t.Errorf("%q", got)
	}
}

func TestFrames(t *testing.T) {
	d := task.Deadlines{Term: 1, Kill: 2, End: 3}
	var buf []byte
	for _, m := range []*message{
		{Op: opStart, X: "x1", Deadlines: &d, Launch: &launch{Args: []string{"a", ""}}, Blob: []byte(`{"r":1}`)},
		{Op: "of another version", X: "x2"},
		{Op: opExit, X: "x3", Exit: &exitRecord{Code: 5}},
	} {
		var err error
		if buf, err = appendFrame(buf, m); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(bytes.NewReader(buf))
	first, err := readFrame(r)
	if err != nil || first.X != "x1" || *first.Deadlines != d || len(first.Launch.Args) != 2 || string(first.Blob) != `{"r":1}` {
		t.Errorf("%+v %v", first, err)
	}
	if m, err := readFrame(r); err != nil || m.X != "x2" {
		t.Errorf("%+v %v", m, err)
	}
	if m, err := readFrame(r); err != nil || m.Exit.Code != 5 || len(m.Blob) != 0 {
		t.Errorf("%+v %v", m, err)
	}
	if _, err := readFrame(r); err == nil {
		t.Error("a frame out of nothing")
	}
	if _, err := readFrame(bufio.NewReader(strings.NewReader("\xff\xff\xff\xff\x00\x00\x00\x00"))); err == nil {
		t.Error("a frame of 4 GiB was taken")
	}
	if _, err := appendFrame(nil, &message{Blob: make([]byte, maxFrame+1)}); err == nil {
		t.Error("too large a frame was made")
	}
}

// A task may put anything at the places that the runner reads.
func TestOddFilesInsteadOfOurs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := readOutputs(filepath.Join(dir, "d")); err == nil {
		t.Error("outputs from a directory")
	}
	if kvs, err := readOutputs(filepath.Join(dir, "none")); kvs != nil || err != nil {
		t.Errorf("no file: %v %v", kvs, err)
	}
	if runtime.GOOS == "linux" {
		if _, err := readOutputs("/dev/zero"); err == nil {
			t.Error("outputs from /dev/zero")
		}
		if cp := loadCheckpoint(paths{seq: "/dev/zero", checkpoint: "/dev/zero"}); cp != nil {
			t.Error("a checkpoint from /dev/zero")
		}
	}
}

func TestConfigNamesAllFaults(t *testing.T) {
	err := Config{Dir: "x", Exe: "y", LogKeepAge: -1}.Validate()
	for _, want := range []string{`runner folder "x"`, `binary "y"`, "cannot be negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}
