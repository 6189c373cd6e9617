package api

import (
	"context"
	"strings"
	"testing"

	"lanjobs/transport"
)

// Backup, Survey and Recover make the fake cluster a Machine.
func (c *cluster) Backup(context.Context) ([]byte, error) {
	return []byte("{\"cluster_id\":\"c1\"}\nstate"), nil
}

func (c *cluster) Survey(context.Context) (*transport.RecoverView, error) {
	return &transport.RecoverView{Cluster: "home", Voters: 3, Answering: 1, Needed: 2}, nil
}

func (c *cluster) Recover(_ context.Context, b transport.RecoverBody, by string) (*transport.RecoverView, error) {
	c.recovered = append(c.recovered, b.Cluster+" by "+by)
	return &transport.RecoverView{Cluster: b.Cluster}, nil
}

// TestABackupStaysOnItsMachine: it holds the key from which members are made, so another member is not given it.
func TestABackupStaysOnItsMachine(t *testing.T) {
	c := newCluster(t)
	if a := c.get("/v1/backup"); a.status != 200 || !strings.HasSuffix(a.body, "state") {
		t.Fatalf("the owner: %d %s", a.status, a.body)
	}
	a := c.ask("GET", "/v1/recover", "")
	if a.status != 200 || !strings.Contains(a.body, `"needed":2`) {
		t.Errorf("survey: %d %s", a.status, a.body)
	}
	if a := c.ask("POST", "/v1/recover", `{"cluster":"home"}`); a.status != 200 || len(c.recovered) != 1 || !strings.HasPrefix(c.recovered[0], "home by ") {
		t.Errorf("recover: %d %s %v", a.status, a.body, c.recovered)
	}
	if a := c.ask("POST", "/v1/recover", `{"cluster":"home","force":true}`); a.status != 400 || len(c.recovered) != 1 {
		t.Errorf("an unknown field: %d %s", a.status, a.body)
	}
	rep, err := c.api.ServeForwarded(t.Context(), &transport.APIRequest{HTTPMethod: "GET", Path: "/v1/backup", By: "node n2"})
	if err == nil && rep.Status < 400 {
		t.Errorf("passed on by another member: %d %s", rep.Status, rep.Body)
	}
}
