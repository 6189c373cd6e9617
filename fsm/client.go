package fsm

import (
	"bytes"
	"slices"

	"lanjobs/task"
)

// Role is what a client may do (R46). Each may all that the one before it may.
type Role string

// The roles.
const (
	RoleViewer   Role = "viewer"   // reads
	RoleOperator Role = "operator" // submits, cancels, retries; schedules, queues, drains
	RoleAdmin    Role = "admin"    // members, tokens, clients, backups
)

// Valid tells whether it is one of the roles.
func (r Role) Valid() bool { return r == RoleViewer || r == RoleOperator || r == RoleAdmin }

// Client is a person's or a program's access that was given by `lanjobs login`.
type Client struct {
	ID       string
	Name     string // for people, as "anna@laptop"
	Role     Role
	Key      []byte // hash of the public key of its certificate
	By       string // who let it in
	Created  int64  // wall clock, display
	Admitted string // id of the token it came by
}

// AdmitClient uses a login token for a new client (level 3).
type AdmitClient struct {
	TokenHash []byte
	ID, Name  string
	Key       []byte
}

// RemoveClient shuts a client out at once (level 3).
type RemoveClient struct{ ID, By string }

const maxClients = 1000

// apply spends one use of a login token. A repeat of the same key costs nothing.
func (c *AdmitClient) apply(s *State) Result {
	if !validID(c.ID) || len(c.Name) > maxIDLength || len(c.Key) == 0 || len(c.Key) > maxIDLength {
		return refuse(task.ErrInvalid, "", "a client needs an id, a key and a name of at most %d bytes", maxIDLength)
	}
	i := slices.IndexFunc(s.tokens, func(t *JoinToken) bool { return bytes.Equal(t.Hash, c.TokenHash) && t.Until > s.Led })
	if len(c.TokenHash) == 0 || i < 0 || s.tokens[i].Role == "" {
		return refuse(task.ErrNotAllowed, "On a member: lanjobs token create --role operator", "this login token is not known here: it has ended, was withdrawn, or is of another cluster")
	}
	t := *s.tokens[i]
	if old := s.Client(c.ID); old != nil {
		if bytes.Equal(old.Key, c.Key) && old.Admitted == t.ID {
			return Result{Existed: true}
		}
		return refuse(task.ErrConflict, "", "there is another client %s", c.ID)
	}
	switch {
	case t.Uses < 1:
		return refuse(task.ErrNotAllowed, "On a member: lanjobs token create --role operator", "this login token is used up (tokens have 1 use unless made otherwise)")
	case len(s.clients) >= maxClients:
		return refuse(task.ErrTooLarge, "", "there are %d clients, the most", maxClients)
	}
	t.Uses--
	s.tokens = slices.Clone(s.tokens)
	s.tokens[i] = &t
	s.clients = append(slices.Clip(s.clients), &Client{ID: c.ID, Name: c.Name, Role: t.Role, Key: bytes.Clone(c.Key), By: t.By, Created: s.Wall, Admitted: t.ID})
	s.emit(task.Event{Kind: task.EventTokenUse, Reason: t.ID})
	s.emit(task.Event{Kind: task.EventClientAdmit, Reason: c.Name + " as " + string(t.Role), By: t.By})
	return Result{}
}

func (c *RemoveClient) apply(s *State) Result {
	i := slices.IndexFunc(s.clients, func(k *Client) bool { return k.ID == c.ID })
	if i < 0 {
		return refuse(task.ErrNotFound, "", "no client %s", clip(c.ID, maxIDLength))
	}
	name := s.clients[i].Name
	s.clients = slices.Delete(slices.Clone(s.clients), i, i+1)
	s.emit(task.Event{Kind: task.EventClientRemove, Reason: name, By: clip(c.By, task.MaxMessageLength)})
	return Result{}
}

// Clients gives the clients in order of their admission.
func (s *State) Clients() []*Client { return s.clients }

// Client finds one by its id, nil if there is none.
func (s *State) Client(id string) *Client {
	for _, c := range s.clients {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (*AdmitClient) kind() kind  { return kindAdmitClient }
func (*RemoveClient) kind() kind { return kindRemoveClient }

func (c *AdmitClient) encode(e *enc) { e.raw(c.TokenHash); e.str(c.ID); e.str(c.Name); e.raw(c.Key) }
func decAdmitClient(d *dec) Command {
	return &AdmitClient{TokenHash: d.raw(), ID: d.str(), Name: d.str(), Key: d.raw()}
}
func (c *RemoveClient) encode(e *enc) { e.str(c.ID); e.str(c.By) }

func (c *Client) encode(e *enc) {
	e.str(c.ID)
	e.str(c.Name)
	e.str(string(c.Role))
	e.raw(c.Key)
	e.str(c.By)
	e.i64(c.Created)
	e.str(c.Admitted)
}

func (c *Client) decode(d *dec) {
	*c = Client{ID: d.str(), Name: d.str(), Role: Role(d.str()), Key: cloneNil(d.raw()), By: d.str(), Created: d.i64(), Admitted: d.str()}
	if !validID(c.ID) || !c.Role.Valid() {
		d.fail()
	}
}
