package transport

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/scrypt"

	"lanjobs/task"
)

// A backup file is small, whole and sealed: it holds the key from which members are made and the environment of every job.
//
//	"LANJOBS BACKUP\x01" | length of the head uint32 | head, JSON, readable by anybody | AES-256-GCM of what was backed up
//
// The key is scrypt's of a passphrase; everything before the sealed part is authenticated with it.
const (
	backupMagic   = "LANJOBS BACKUP\x01"
	maxBackupHead = 64 << 10
	// BackupFormat is the newest format that this binary reads.
	BackupFormat = 1
	// MinPassphrase is how short a passphrase may be: whoever has the file may try as many as he likes.
	MinPassphrase = 8
)

// scrypt's cost: 128 MB and about half a second.
const (
	scryptN, scryptR, scryptP = 1 << 17, 8, 1
	maxScryptN                = 1 << 22
)

// BackupHead says what a backup is of.
type BackupHead struct {
	Format     int       `json:"format"`
	Cluster    string    `json:"cluster"`
	ClusterID  string    `json:"cluster_id"`
	Index      uint64    `json:"index"`      // the last entry that is in it
	Generation uint64    `json:"generation"` // number, see GenerationNumber
	Created    time.Time `json:"created"`
	Level      int       `json:"level"`   // cluster level
	Version    string    `json:"version"` // of the lanjobs that made it
	Node       string    `json:"made_on"`
	Digest     string    `json:"digest"` // sha256 of the state, hex
	// Seeds are addresses of the members; only in the sealed part.
	Seeds []string `json:"seeds,omitempty"`
}

// sealedHead is a BackupHead with what opening the file needs.
type sealedHead struct {
	BackupHead
	Salt    []byte `json:"salt"`
	ScryptN int    `json:"scrypt_n"`
	Nonce   []byte `json:"nonce"`
}

// SplitBackup parts what GET /v1/backup gives into its head and the state.
func SplitBackup(plain []byte) (*BackupHead, []byte, error) {
	line, state, ok := bytes.Cut(plain, []byte("\n"))
	h := &BackupHead{}
	if !ok || json.Unmarshal(line, h) != nil || h.ClusterID == "" {
		return nil, nil, badBackup("it has no head")
	}
	if h.Format > BackupFormat {
		return nil, nil, newerBackup(h)
	}
	return h, state, nil
}

func badBackup(why string) error {
	return task.NewProblem(task.ErrInvalid, "this is no backup of lanjobs, or it is damaged: "+why+".", "Take another backup file.")
}

func newerBackup(h *BackupHead) error {
	return task.NewProblem(task.ErrConflict, fmt.Sprintf("the backup was made by lanjobs %s in a format that this version does not know: nothing was changed.", h.Version),
		"Use that version or a newer one: lanjobs help upgrade")
}

// SealBackup makes a file of what GET /v1/backup gives.
func SealBackup(plain, passphrase []byte) ([]byte, error) {
	if len(passphrase) < MinPassphrase {
		return nil, task.NewProblem(task.ErrInvalid, fmt.Sprintf("the passphrase has %d characters: take %d or more, for instance four words.", len(passphrase), MinPassphrase), "")
	}
	inner, _, err := SplitBackup(plain)
	if err != nil {
		return nil, err
	}
	head := sealedHead{BackupHead: *inner, Salt: make([]byte, 16), ScryptN: scryptN}
	head.Seeds = nil
	_, _ = rand.Read(head.Salt) // never fails
	seal, err := backupSeal(passphrase, &head)
	if err != nil {
		return nil, err
	}
	head.Nonce = make([]byte, seal.NonceSize())
	_, _ = rand.Read(head.Nonce)
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	file := append([]byte(backupMagic), binary.BigEndian.AppendUint32(nil, uint32(len(text)))...)
	file = append(file, text...)
	return seal.Seal(file, head.Nonce, plain, file), nil
}

func backupSeal(passphrase []byte, h *sealedHead) (cipher.AEAD, error) {
	key, err := scrypt.Key(passphrase, h.Salt, h.ScryptN, scryptR, scryptP, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// ReadBackupHead reads what anybody may know of a backup file.
func ReadBackupHead(file []byte) (*BackupHead, error) {
	h, _, err := splitFile(file)
	if err != nil {
		return nil, err
	}
	return &h.BackupHead, nil
}

func splitFile(file []byte) (h *sealedHead, begin int, err error) {
	n := len(backupMagic)
	if len(file) < n+4 || string(file[:n-1]) != backupMagic[:n-1] {
		return nil, 0, badBackup("it does not begin like one")
	}
	size := int(binary.BigEndian.Uint32(file[n:]))
	begin = n + 4 + size
	if size > maxBackupHead || begin > len(file) {
		return nil, 0, badBackup("its head is cut")
	}
	h = &sealedHead{}
	if err := json.Unmarshal(file[n+4:begin], h); err != nil {
		return nil, 0, badBackup("its head cannot be read")
	}
	if h.Format > BackupFormat || file[n-1] != backupMagic[n-1] {
		return nil, 0, newerBackup(&h.BackupHead)
	}
	return h, begin, nil
}

// ErrPassphrase: the passphrase does not open the file, or the file was altered or cut: the two cannot be told apart.
var ErrPassphrase = errors.New("the passphrase does not open it")

// OpenBackup gives back what SealBackup was given.
func OpenBackup(file, passphrase []byte) ([]byte, error) {
	h, begin, err := splitFile(file)
	if err != nil {
		return nil, err
	}
	if h.ScryptN > maxScryptN || h.ScryptN < 2 || h.ScryptN&(h.ScryptN-1) != 0 {
		return nil, badBackup("its head is not one of ours")
	}
	seal, err := backupSeal(passphrase, h)
	if err != nil {
		return nil, badBackup(err.Error())
	}
	if len(h.Nonce) != seal.NonceSize() {
		return nil, badBackup("its head is not one of ours")
	}
	plain, err := seal.Open(nil, h.Nonce, file[begin:], file[:begin])
	if err != nil {
		return nil, ErrPassphrase
	}
	return plain, nil
}

// RestoreView is what a restore has made, or with dry run would begin with.
type RestoreView struct {
	BackupHead
	Node          string   `json:"node,omitempty"`
	Fingerprint   string   `json:"ca_fingerprint,omitempty"`
	Addresses     []string `json:"addresses,omitempty"`
	NewGeneration uint64   `json:"new_generation,omitempty"`
	Jobs          int      `json:"unfinished_jobs"`
	Machines      []string `json:"machines"` // members at the time of the backup; once restored, those that may come back
	Clients       []string `json:"clients"`  // who had logged in by then; once restored, who may go on
	Tokens        int      `json:"tokens"`   // of machines and logins; a restore ends them all
	// Withdrawn are machines and clients of the backup that the restored cluster does not let in.
	Withdrawn []string `json:"withdrawn,omitempty"`
}
