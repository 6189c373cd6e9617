package api

import (
	"context"
	"strings"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

// desk is a Pairing with one machine that waits, whose code is K7QF2M9X.
type desk struct {
	asked    []string // what came of requests
	decision transport.PairDecision
}

func (d *desk) Waiting() []transport.PairingView {
	return []transport.PairingView{{ID: "secret", Node: "n9", Name: "pc", OS: "windows", Arch: "amd64", Version: "1.4.0", Address: "192.168.1.23", AskedSeconds: 20}}
}

func (d *desk) Check(_ context.Context, code transport.PairCode, id task.RequestID) (*transport.PairingView, error) {
	d.asked = append(d.asked, "check "+string(code)+" "+strings.Split(string(id), "~")[0])
	if code != "K7QF2M9X" {
		return nil, task.NewProblem(task.ErrNotAllowed, "no waiting machine has the code "+code.String()+".", "")
	}
	v := d.Waiting()[0]
	v.ID = "p1"
	return &v, nil
}

func (d *desk) Approve(_ context.Context, pairing string, b transport.PairDecision, by string) (*transport.PairingView, error) {
	d.asked, d.decision = append(d.asked, "approve "+pairing+" by "+by), b
	v := d.Waiting()[0]
	return &v, nil
}

func (d *desk) Refuse(pairing, by string) error {
	d.asked = append(d.asked, "refuse "+pairing+" by "+by)
	return nil
}

func TestPairings(t *testing.T) {
	c := newCluster(t)
	d := &desk{}
	c.api.cfg.Pairing = d
	var l task.List[transport.PairingView]
	a := c.get("/v1/pairings").ok(&l)
	if l.Kind != "PairingList" || len(l.Items) != 1 || l.Items[0].Name != "pc" || strings.Contains(a.body, "secret") {
		t.Errorf("list: %s", a.body)
	}
	var v transport.PairingView
	c.ask("POST", "/v1/pairings", `{"code":"k7qf-2m9x"}`, transport.HeaderRequestID, "q1").ok(&v)
	if v.ID != "p1" {
		t.Errorf("found %+v", v)
	}
	c.ask("POST", "/v1/pairings", `{"code":"0000-0000"}`, transport.HeaderRequestID, "q2").problem(403, "not_allowed", "no waiting machine has the code 0000-0000.")
	c.ask("POST", "/v1/pairings", `{"code":"0000"}`).problem(400, "invalid", "it has 4 characters, not 8")
	c.ask("POST", "/v1/pairings", `{}`).problem(400, "invalid", "is no pairing code")
	c.ask("POST", "/v1/pairings/p1/approve", `{"worker":true,"role":"viewer"}`).ok(&v)
	if d.decision != (transport.PairDecision{Worker: true, Role: "viewer"}) {
		t.Error("the role is lost")
	}
	c.ask("DELETE", "/v1/pairings/p1", "").ok(nil)
	if got := strings.Join(d.asked, ", "); got != "check K7QF2M9X q1, check 00000000 q2, approve p1 by anna, refuse p1 by anna" {
		t.Errorf("asked: %s", got)
	}
}

// TestPairingsWithoutCluster: a machine that is alone has no door to come in by.
func TestPairingsWithoutCluster(t *testing.T) {
	c := bare(t)
	c.get("/v1/pairings").problem(409, "conflict", "nothing to join")
	c.ask("POST", "/v1/pairings", `{"code":"K7QF-2M9X"}`).problem(409, "conflict", "nothing to join")
}
