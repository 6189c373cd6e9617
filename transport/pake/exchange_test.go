package pake

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func terms(code string) Terms {
	return Terms{Code: []byte(code), Channel: Channel("test", []byte("joiner's key"), []byte("authority")), Session: []byte("s1")}
}

// meet lets a joiner and a leader exchange one message each.
func meet(t testing.TB, joiner, leader Terms, said, heard string) (j, l *Keys, atJoiner, atLeader error) {
	start := NewStart(joiner, []byte(said))
	share, l, err := Answer(leader, start.Share, []byte(heard))
	if err != nil {
		t.Fatal(err)
	}
	j, atJoiner = start.Finish(share, l.Proof)
	return j, l, atJoiner, l.Check(j.Proof)
}

func TestSameCode(t *testing.T) {
	j, l, atJoiner, atLeader := meet(t, terms("K7QF2M9X"), terms("K7QF2M9X"), "pc-win", "pc-win")
	if atJoiner != nil || atLeader != nil {
		t.Fatalf("joiner: %v, leader: %v", atJoiner, atLeader)
	}
	sealed := l.Seal([]byte("token"), "join")
	if got, err := j.Open(sealed, "join"); err != nil || string(got) != "token" {
		t.Errorf("opened %q, %v", got, err)
	}
	if _, err := j.Open(sealed, "other"); !errors.Is(err, ErrSealed) {
		t.Errorf("another purpose: %v", err)
	}
	sealed[len(sealed)-1] ^= 1
	if _, err := j.Open(sealed, "join"); !errors.Is(err, ErrSealed) {
		t.Errorf("altered: %v", err)
	}
	if _, err := j.Open(nil, "join"); !errors.Is(err, ErrSealed) {
		t.Errorf("nothing: %v", err)
	}
}

// TestAnyDifference: whatever the two sides do not agree on, both notice.
func TestAnyDifference(t *testing.T) {
	change := map[string]func(*Terms){
		"code":             func(x *Terms) { x.Code = []byte("K7QF2M9Y") },
		"no code":          func(x *Terms) { x.Code = nil },
		"joiner's key":     func(x *Terms) { x.Channel = Channel("test", []byte("another key"), []byte("authority")) },
		"authority":        func(x *Terms) { x.Channel = Channel("test", []byte("joiner's key"), []byte("of another")) },
		"key and CA apart": func(x *Terms) { x.Channel = Channel("test", []byte("joiner's keya"), []byte("uthority")) },
		"protocol":         func(x *Terms) { x.Channel = Channel("login", []byte("joiner's key"), []byte("authority")) },
		"session":          func(x *Terms) { x.Session = []byte("s2") },
	}
	for what, f := range change {
		other := terms("K7QF2M9X")
		f(&other)
		j, l, atJoiner, atLeader := meet(t, terms("K7QF2M9X"), other, "pc-win", "pc-win")
		if !errors.Is(atJoiner, ErrProof) || !errors.Is(atLeader, ErrProof) {
			t.Errorf("%s: joiner: %v, leader: %v", what, atJoiner, atLeader)
		}
		if _, err := j.Open(l.Seal([]byte("token"), "join"), "join"); err == nil {
			t.Errorf("%s: the token can be read", what)
		}
	}
	if _, _, atJoiner, atLeader := meet(t, terms("K7QF2M9X"), terms("K7QF2M9X"), "pc-win", "pc-evil"); !errors.Is(atJoiner, ErrProof) || !errors.Is(atLeader, ErrProof) {
		t.Errorf("claim: joiner: %v, leader: %v", atJoiner, atLeader)
	}
}

// TestOneAnswer: a Start takes one answer, right or wrong, so that one exchange is one guess.
func TestOneAnswer(t *testing.T) {
	start := NewStart(terms("K7QF2M9X"), nil)
	wrong, lw, _ := Answer(terms("00000000"), start.Share, nil)
	right, lr, _ := Answer(terms("K7QF2M9X"), start.Share, nil)
	if _, err := start.Finish(wrong, lw.Proof); !errors.Is(err, ErrProof) {
		t.Errorf("wrong code: %v", err)
	}
	if _, err := start.Finish(right, lr.Proof); !errors.Is(err, ErrSpent) {
		t.Errorf("the second answer: %v", err)
	}
	start = NewStart(terms("K7QF2M9X"), nil)
	if _, err := start.Finish(nil, nil); !errors.Is(err, ErrShare) {
		t.Errorf("no share: %v", err)
	}
	if _, err := start.Finish(right, lr.Proof); !errors.Is(err, ErrSpent) {
		t.Errorf("after no share: %v", err)
	}
}

// TestReflected: what a side gets back of its own proves nothing.
func TestReflected(t *testing.T) {
	start := NewStart(terms("K7QF2M9X"), []byte("pc-win"))
	if _, err := start.Finish(start.Share, nil); !errors.Is(err, ErrShare) {
		t.Errorf("its own share: %v", err)
	}
	j, l, _, _ := meet(t, terms("K7QF2M9X"), terms("K7QF2M9X"), "", "")
	if err := l.Check(l.Proof); !errors.Is(err, ErrProof) {
		t.Errorf("the leader's own proof: %v", err)
	}
	if err := j.Check(j.Proof); !errors.Is(err, ErrProof) {
		t.Errorf("the joiner's own proof: %v", err)
	}
	if bytes.Equal(j.Proof, l.Proof) {
		t.Error("both prove with the same")
	}
}

// TestReplayed: messages of one exchange are of no use in another under the same code.
func TestReplayed(t *testing.T) {
	code := terms("K7QF2M9X")
	first := NewStart(code, nil)
	share, l, _ := Answer(code, first.Share, nil)
	j, err := first.Finish(share, l.Proof)
	if err != nil {
		t.Fatal(err)
	}
	again := NewStart(code, nil)
	if _, err := again.Finish(share, l.Proof); !errors.Is(err, ErrProof) {
		t.Errorf("an old answer: %v", err)
	}
	// The old first message and the old proof, played to the leader once more.
	_, l2, _ := Answer(code, first.Share, nil)
	if err := l2.Check(j.Proof); !errors.Is(err, ErrProof) {
		t.Errorf("an old proof: %v", err)
	}
	if _, err := j.Open(l2.Seal([]byte("token"), "join"), "join"); err == nil {
		t.Error("an old key opens a new token")
	}
}

// TestBadShares: what is no element, or the identity, ends the exchange on both sides.
func TestBadShares(t *testing.T) {
	bad := map[string][]byte{
		"nothing":      nil,
		"identity":     make([]byte, ShareBytes),
		"too short":    unhex(t, "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a5"),
		"too long":     append(unhex(t, "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c"), 0),
		"not on it":    unhex(t, "2b3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c"), // Y_i1 of the draft
		"not reduced":  append(append([]byte{0xed}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f),
		"negative":     append([]byte{1}, make([]byte, 31)...),
		"all ones":     bytes.Repeat([]byte{0xff}, 32),
		"sign bit set": append(make([]byte, 31), 0x80),
	}
	for what, share := range bad {
		if _, err := NewStart(terms("K7QF2M9X"), nil).Finish(share, nil); !errors.Is(err, ErrShare) {
			t.Errorf("joiner, %s: %v", what, err)
		}
		if _, _, err := Answer(terms("K7QF2M9X"), share, nil); !errors.Is(err, ErrShare) {
			t.Errorf("leader, %s: %v", what, err)
		}
	}
}

// TestAgreement: for whatever code, channel and claim, the two agree if and only if they have the same.
func TestAgreement(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 200)
		draw := func(name string) []byte { return text.Draw(rt, name) }
		a := Terms{Code: draw("code"), Channel: draw("channel"), Session: draw("session")}
		b, claim := a, draw("claim")
		heard := claim
		switch rapid.IntRange(0, 4).Draw(rt, "altered") {
		case 1:
			b.Code = draw("other code")
		case 2:
			b.Channel = draw("other channel")
		case 3:
			b.Session = draw("other session")
		case 4:
			heard = draw("other claim")
		}
		equal := bytes.Equal(a.Code, b.Code) && bytes.Equal(a.Channel, b.Channel) && bytes.Equal(a.Session, b.Session) && bytes.Equal(claim, heard)
		_, _, atJoiner, atLeader := meet(t, a, b, string(claim), string(heard))
		if (atJoiner == nil) != equal || (atLeader == nil) != equal {
			rt.Fatalf("equal %v, joiner %v, leader %v", equal, atJoiner, atLeader)
		}
	})
}

// FuzzShares: no message of a stranger breaks anything.
func FuzzShares(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add(make([]byte, 32), make([]byte, 64))
	f.Fuzz(func(t *testing.T, share, proof []byte) {
		if _, err := NewStart(terms("K7QF2M9X"), nil).Finish(share, proof); err == nil {
			t.Error("believed")
		}
		if _, k, err := Answer(terms("K7QF2M9X"), share, nil); err == nil && k.Check(proof) == nil {
			t.Error("believed")
		}
	})
}
