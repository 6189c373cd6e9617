package node

import (
	"encoding/json"

	"go.etcd.io/bbolt"

	"lanjobs/task"
)

// Settings are what init, join or an earlier start was told and every later start needs.
type Settings struct {
	Listen string   `json:"listen,omitempty"`
	Worker bool     `json:"worker,omitempty"` // joined with --worker: never a voter
	Seeds  []string `json:"seeds,omitempty"`  // addresses of members at the time of joining
	Rules  Rules    `json:"rules,omitzero"`
	Begin  Begin    `json:"begin,omitzero"`
}

// Begin is what the first leader of a recovered or restored history has to commit on this machine.
type Begin struct {
	By       string        `json:"by,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Admit    bool          `json:"admit,omitempty"`    // restored: this machine is new in the state
	Replaces []task.NodeID `json:"replaces,omitempty"` // with Admit
}

var keySettings = []byte("settings")

// Settings gives what is stored, the zero value if nothing is.
func (s *localStore) Settings() (out Settings, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket(bucketMeta).Get(keySettings); v != nil {
			return json.Unmarshal(v, &out)
		}
		return nil
	})
	return out, err
}

// SetSettings stores them.
func (s *localStore) SetSettings(v Settings) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keySettings, b) })
}
