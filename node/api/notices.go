package api

import (
	"encoding/json"
	"net/http"

	"lanjobs/task"
)

// noticed adds to a status what this machine says about itself, also to one that the leader made: it concerns whoever asks here.
func (a *API) noticed(q *request) func(*reply, error) (*reply, error) {
	return func(rep *reply, err error) (*reply, error) {
		if err != nil || q.forwarded || a.cfg.Notices == nil || q.http.URL.Path != "/v1/status" || rep.status != http.StatusOK {
			return rep, err
		}
		said := a.cfg.Notices()
		var v task.ClusterView
		if len(said) == 0 || json.Unmarshal(rep.body, &v) != nil {
			return rep, nil
		}
		v.Notices = append(v.Notices, said...)
		body, err := json.Marshal(&v)
		if err != nil {
			return nil, err
		}
		rep.body = append(body, '\n')
		return rep, nil
	}
}
