package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode"

	"lanjobs/task"
)

// CodeLogin is what LoginByCode is told. The token of the LoginConfig is not used; its role is the one that is asked for.
type CodeLogin struct {
	LoginConfig
	Version  string                                  // of this binary
	Show     func(code PairCode, left time.Duration) // see PairConfig
	Say      func(text string)
	Approved func(PairGrant) // somebody has said yes, and the token is used now
}

// LoginByCode waits with a code until a person on a member gives access to the person here, then logs in with the very key that
// the code stood for. Its errors are those of Pair and Login.
func LoginByCode(ctx context.Context, cfg CodeLogin) (*Access, error) {
	access, csr, err := newAccess(cfg.Name)
	if err != nil {
		return nil, err
	}
	claim := PairClaim{Name: cfg.Name, OS: runtime.GOOS, Arch: runtime.GOARCH, Version: cfg.Version, Role: cfg.Role}
	if cfg.Role == "" {
		return nil, task.NewProblem(task.ErrInvalid, "a login by a code asks for a role", "")
	}
	if err := claim.Check(); err != nil {
		return nil, err
	}
	g, err := pair(ctx, PairConfig{JoinConfig: cfg.asJoin(), Show: cfg.Show, Say: cfg.Say}, csr, claim)
	if err != nil {
		return nil, tooOldForLogins(err, cfg)
	}
	cfg.Approved(*g)
	token, err := ParseJoinToken(g.Token)
	if err != nil {
		return nil, err
	}
	cfg.Role = g.Role
	return cfg.login(ctx, token, access, csr)
}

// tooOldForLogins says what it means when a request that is in order here is none there: that cluster's leader misses a node in it.
func tooOldForLogins(err error, cfg CodeLogin) error {
	p, ok := errors.AsType[*task.Problem](err)
	if !ok || !errors.Is(err, task.ErrInvalid) || !strings.HasPrefix(p.Detail, noPairRequest) {
		return err
	}
	return task.NewProblem(task.ErrInvalid, fmt.Sprintf("the cluster at %s does not know of logins by a code: its version is older than this one.", cfg.Peer),
		fmt.Sprintf("On a member: lanjobs token create --role %s; then here: lanjobs login %s --token-file -", cfg.Role, cfg.Peer))
}

// checkLogin refuses what is no request of a person, or could mislead on a screen.
func (c PairClaim) checkLogin() error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }
	switch {
	case c.Node != "" || c.Worker:
		return task.NewProblem(task.ErrInvalid, noPairRequest+"it is one of a machine and of a person", "")
	case c.Name == "" || len(c.Name) > MaxClientName || strings.ContainsFunc(c.Name, odd) || strings.ContainsRune(c.Name, unicode.ReplacementChar):
		return task.NewProblem(task.ErrInvalid, fmt.Sprintf("%sa client's name has 1 to %d characters and no spaces", noPairRequest, MaxClientName), "")
	case len(c.Role) > maxPairText || strings.ContainsFunc(c.Role, odd):
		return task.NewProblem(task.ErrInvalid, noPairRequest+"no role", "")
	}
	return nil
}
