package transport

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"lanjobs/task"
)

func TestABackupFileOpensWithItsPassphraseOnly(t *testing.T) {
	plain := []byte(`{"format":1,"cluster":"home","cluster_id":"c1","index":7,"seeds":["10.0.0.1:7420"],"version":"0.1.0"}` + "\nthe state, with a PRIVATE KEY")
	file, err := SealBackup(plain, []byte("four words make one"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(file, []byte("PRIVATE KEY")) || bytes.Contains(file, []byte("10.0.0.1")) {
		t.Error("the file shows what is sealed")
	}
	head, err := ReadBackupHead(file)
	if err != nil || head.Cluster != "home" || head.Index != 7 {
		t.Fatalf("%+v, %v", head, err)
	}
	got, err := OpenBackup(file, []byte("four words make one"))
	if err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := OpenBackup(file, []byte("four words make two")); !errors.Is(err, ErrPassphrase) {
		t.Errorf("another passphrase: %v", err)
	}
	again, err := SealBackup(plain, []byte("four words make one"))
	if err != nil || bytes.Equal(again, file) {
		t.Error("salt and nonce repeat")
	}
	// Altered or cut anywhere, it never opens, and never by a panic. The passphrase costs half a second, so few places are tried.
	for _, at := range []int{0, len(backupMagic), len(backupMagic) + 3, len(backupMagic) + 30, len(file) - 1} {
		bad := bytes.Clone(file)
		bad[at] ^= 1
		if got, err := OpenBackup(bad, []byte("four words make one")); err == nil {
			t.Errorf("a file altered at %d opens as %q", at, got)
		}
	}
	for _, n := range []int{0, 10, len(backupMagic) + 2, len(backupMagic) + 40, len(file) - 1} {
		if _, err := OpenBackup(file[:n], []byte("four words make one")); err == nil {
			t.Errorf("a file cut at %d opens", n)
		}
	}
}

func TestABackupOfALaterFormatIsRefusedPlainly(t *testing.T) {
	plain := []byte(`{"format":1,"cluster":"home","cluster_id":"c1","version":"9.9.9"}` + "\nstate")
	file, err := SealBackup(plain, []byte("four words make one"))
	if err != nil {
		t.Fatal(err)
	}
	later := bytes.Replace(file, []byte(`"format":1`), []byte(`"format":2`), 1)
	if _, err := ReadBackupHead(later); !errors.Is(err, task.ErrConflict) || !strings.Contains(err.Error(), "9.9.9") {
		t.Errorf("%v", err)
	}
	if _, err := SealBackup(plain, []byte("short")); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("a short passphrase: %v", err)
	}
	if _, _, err := SplitBackup([]byte("no head")); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("no head: %v", err)
	}
}

func TestGenerationsAreOrderedAndDistinct(t *testing.T) {
	if GenerationNumber(0) != 1 || GenerationNumber(1) != 1 {
		t.Error("the first generation is 1")
	}
	a, b := NextGeneration(1, 4), NextGeneration(4)
	if GenerationNumber(a) != 5 || GenerationNumber(b) != 5 || a == b || a <= NextGeneration(3) {
		t.Errorf("%x %x", a, b)
	}
	if err := generationError(a, b); !errors.Is(err, ErrWrongGeneration) || !strings.Contains(err.Error(), "know nothing of each other") {
		t.Errorf("%v", err)
	}
	if err := generationError(1, a); !strings.Contains(err.Error(), "1, here it is 5") {
		t.Errorf("%v", err)
	}
}
