package worker

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"lanjobs/task"
	"lanjobs/task/runner"
)

// Keys in the Store: what it is, then the token.
const (
	reportPrefix = "report/"
	deferPrefix  = "defer/"
)

func noteKey(prefix string, t task.Token) string { return prefix + strconv.FormatUint(uint64(t), 16) }

// persist puts reports that have to wait, and have no exit record, on disk: one transaction for the group. A report that is
// acknowledged at once, as nearly all are, never costs one.
func (w *Worker) persist(group []*entry) {
	if w.cfg.Store == nil {
		return
	}
	records := map[string][]byte{}
	var put []*entry
	for _, e := range group {
		if e.recorded || e.stored {
			continue
		}
		value, err := json.Marshal(e.report)
		if err != nil {
			w.log.Error("report not stored", "token", e.report.Token, "err", err)
			continue
		}
		records[noteKey(reportPrefix, e.report.Token)] = value
		put = append(put, e)
	}
	if len(records) == 0 {
		return
	}
	if err := w.cfg.Store.Put(records); err != nil {
		w.log.Error("reports not stored", "count", len(records), "err", err)
		return // tried again before the next try
	}
	for _, e := range put {
		e.stored = true
	}
}

// unstore removes what the Store has of reports: one transaction for the group.
func (w *Worker) unstore(done []*entry) {
	if w.cfg.Store == nil {
		return
	}
	var keys []string
	for _, e := range done {
		if e.stored {
			keys = append(keys, noteKey(reportPrefix, e.report.Token), noteKey(deferPrefix, e.report.Token))
		}
	}
	if len(keys) == 0 {
		return
	}
	if err := w.cfg.Store.Delete(keys); err != nil {
		w.log.Error("acknowledged reports not removed", "count", len(done), "err", err)
	}
}

// noteDeferral keeps a task's wish to run later over a restart of the agent: the exit record does not know of it.
func (w *Worker) noteDeferral(t task.Token, wait task.Millis) error {
	if w.cfg.Store == nil {
		return nil
	}
	return w.cfg.Store.Put(map[string][]byte{noteKey(deferPrefix, t): []byte(strconv.FormatInt(int64(wait), 10))})
}

// loadStore takes the notes of the former agent: reports go into the outbox, deferrals to the attempts that the runner still
// knows. What nobody needs any more or nobody can read is removed.
func (w *Worker) loadStore(held []runner.Held) error {
	if w.cfg.Store == nil {
		return nil
	}
	records, err := w.cfg.Store.All()
	if err != nil {
		return err
	}
	known := map[task.Token]bool{}
	for _, h := range held {
		known[h.Assignment.Token] = true
	}
	var waste []string
	for key, value := range records {
		if err := w.loadRecord(key, value, known); err != nil {
			w.log.Info("note removed", "key", key, "why", err)
			waste = append(waste, key)
		}
	}
	if len(waste) == 0 {
		return nil
	}
	return w.cfg.Store.Delete(waste)
}

func (w *Worker) loadRecord(key string, value []byte, known map[task.Token]bool) error {
	if strings.HasPrefix(key, reportPrefix) {
		e := &entry{stored: true, retry: reportBackoff()}
		if err := json.Unmarshal(value, &e.report); err != nil {
			return err
		}
		w.outbox.insert(e)
		return nil
	}
	name, isDefer := strings.CutPrefix(key, deferPrefix)
	if !isDefer {
		return fmt.Errorf("unknown kind")
	}
	token, err := strconv.ParseUint(name, 16, 64)
	if err != nil {
		return err
	}
	wait, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return err
	}
	if !known[task.Token(token)] {
		return fmt.Errorf("its attempt is gone")
	}
	w.book.setDeferred(task.Token(token), task.Millis(wait))
	return nil
}

func (b *book) setDeferred(t task.Token, wait task.Millis) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.attempts[t]
	if a == nil {
		return false
	}
	a.deferred, a.wait = true, wait
	return true
}
