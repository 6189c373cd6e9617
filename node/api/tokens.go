package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// Bounds of a join or login token.
const (
	defaultTokenTTL = time.Hour
	minTokenTTL     = time.Minute
	maxTokenTTL     = 30 * 24 * time.Hour
	maxTokenUses    = 100
)

// createToken answers POST /v1/tokens (R46). The token is in this answer and nowhere else: the ledger has its hash. When the
// answer was lost and the request is repeated, a new token takes the place of the one that nobody has seen.
func (a *API) createToken(ctx context.Context, q *request) (*reply, error) {
	var b transport.TokenBody
	if err := q.decode(&b); err != nil {
		return nil, err
	}
	ttl, err := tokenBody(&b)
	if err != nil {
		return nil, err
	}
	id := tokenID(q.id)
	var ca transport.Fingerprint
	again := false
	a.look(q, func(v *view) {
		if v.Cluster.ID == "" {
			err = task.NewProblem(task.ErrConflict, "this machine is no cluster yet, so there is nothing to join.", "Make one of it: lanjobs init")
			return
		}
		ca, err = transport.ClusterInfo{CACert: string(v.Cluster.CACert)}.Fingerprint()
		for _, t := range v.JoinTokens() {
			again = again || t.ID == id
		}
	})
	if err != nil {
		return nil, err
	}
	if again {
		if _, err := a.propose(ctx, &fsm.RemoveToken{ID: id, By: q.by}); err != nil {
			return nil, err
		}
	}
	token := transport.NewJoinToken(ca)
	c := &fsm.CreateToken{ID: id, Hash: transport.HashSecret(token.Secret), TTL: task.MillisOf(ttl), Uses: b.Uses, Worker: b.Worker, Role: fsm.Role(b.Role), By: q.by}
	if _, err := a.propose(ctx, c); err != nil {
		return nil, err
	}
	verb := "join"
	if b.Role != "" {
		verb = "login"
	}
	return jsonReply(http.StatusCreated, transport.TokenView{ID: id, Token: token.String(), Join: a.joinLines(verb, q.via, token.String()),
		LeftSeconds: ttl.Seconds(), UsesLeft: b.Uses, Worker: b.Worker, Role: b.Role, By: q.by})
}

// tokenBody fills in what was left out and refuses what is out of bounds.
func tokenBody(b *transport.TokenBody) (time.Duration, error) {
	if b.Uses == 0 {
		b.Uses = 1
	}
	if b.TTLSeconds == 0 {
		b.TTLSeconds = defaultTokenTTL.Seconds()
	}
	ttl, ok := secondsOf(b.TTLSeconds)
	if !ok || ttl < minTokenTTL || ttl > maxTokenTTL {
		return 0, invalid(fmt.Sprintf("a token lasts from 1m to 30d, not %s s (ttl_seconds)", strconv.FormatFloat(b.TTLSeconds, 'f', -1, 64)), "")
	}
	if b.Role != "" && (b.Worker || !fsm.Role(b.Role).Valid()) {
		return 0, invalid("role is viewer, operator or admin, and goes with a login token, not with worker", "")
	}
	if b.Uses < 1 || b.Uses > maxTokenUses {
		return 0, invalid(fmt.Sprintf("uses %d is not from 1 to %d", b.Uses, maxTokenUses), "")
	}
	return ttl, nil
}

// tokenID is the same for every try of one request.
func tokenID(r task.RequestID) string {
	sum := sha256.Sum256([]byte("join token\x00" + r))
	return fmt.Sprintf("t%x", sum[:4])
}

// joinLines are complete commands, one per address of the member that the client talks to.
func (a *API) joinLines(verb string, via task.NodeID, token string) []string {
	var out []string
	for _, m := range a.cfg.Peers.Members() {
		if m.ID != via {
			continue
		}
		for _, addr := range m.Addresses {
			out = append(out, strings.Join([]string{"lanjobs", verb, addr, "--token", token}, " "))
		}
	}
	return out
}

// listTokens answers GET /v1/tokens: those that still let somebody in.
func (a *API) listTokens(_ context.Context, q *request) (*reply, error) {
	out := task.List[transport.TokenView]{Kind: "TokenList", Items: []transport.TokenView{}}
	a.look(q, func(v *view) {
		out.Index = v.Index
		for _, t := range v.JoinTokens() {
			if left := t.Until - v.Led; left > 0 && t.Uses > 0 {
				out.Items = append(out.Items, transport.TokenView{ID: t.ID, LeftSeconds: seconds(left), UsesLeft: t.Uses, Worker: t.Worker, Role: string(t.Role), By: t.By})
			}
		}
	})
	return ok(out)
}

// removeToken answers DELETE /v1/tokens/{id}.
func (a *API) removeToken(ctx context.Context, q *request) (*reply, error) {
	id := q.value("id")
	r, err := a.cfg.Leader.Propose(ctx, &fsm.RemoveToken{ID: id, By: q.by})
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, task.NewProblem(task.ErrNotFound, "no join token "+shown(id)+".", "All tokens: lanjobs token ls")
	}
	return ok(struct{}{})
}
