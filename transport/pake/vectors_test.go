package pake

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/gtank/ristretto255"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func same(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if !bytes.Equal(got, unhex(t, want)) {
		t.Errorf("%s\n got %x\nwant %s", what, got, strings.Join(strings.Fields(want), ""))
	}
}

func scalar(t *testing.T, text string) *ristretto255.Scalar {
	t.Helper()
	s := ristretto255.NewScalar()
	if err := s.Decode(unhex(t, text)); err != nil {
		t.Fatal(err)
	}
	return s
}

// The vectors of draft-irtf-cfrg-cpace-21, appendix A and B.3.
const (
	vectorSession = "7e4b4791d6a8ef019b936c79fb7f2c57"
	vectorYa      = "d6bac480f2c386c394efc7c47adb9925dcd2630b64f240c50f8d0eec482b9157"
	vectorYb      = "3ea7e0b19560d7c0b0f5734f63b955286dfa8232b5ebe63324e2d9e7433f7258"
	vectorPoint   = "80b69a8a76457ab6a4d7f887a4bf6b55a2f80ac19c333f917a05fc9887c8b40f"
)

func TestDraftStrings(t *testing.T) {
	same(t, "prepend_len of nothing", prependLen(nil, nil), "00")
	same(t, "prepend_len of 1234", prependLen(nil, []byte("1234")), "0431323334")
	long := make([]byte, 128)
	if got := prependLen(nil, long); len(got) != 130 || got[0] != 0x80 || got[1] != 0x01 {
		t.Errorf("prepend_len of 128 bytes begins with %x", got[:2])
	}
	same(t, "lv_cat", lvCat([]byte("1234"), []byte("5"), nil, []byte("6789")), "04313233340135000436373839")
}

func TestDraftVectors(t *testing.T) {
	code, channel, session := []byte("Password"), lvCat([]byte("A_initiator"), []byte("B_responder")), unhex(t, vectorSession)
	same(t, "generator string", generatorString(code, channel, session), `
		11435061636552697374726574746f3235350850617373776f726464
		00000000000000000000000000000000000000000000000000000000
		00000000000000000000000000000000000000000000000000000000
		00000000000000000000000000000000000000000000000000000000
		00000000000000000000000000000000180b415f696e69746961746f
		720b425f726573706f6e646572107e4b4791d6a8ef019b936c79fb7f 2c57`)
	g := generator(code, channel, session)
	same(t, "generator", g.Encode(nil), "222b6b195fe84b1652badb6f6a3ae3d24341e7306967f0b8115b40d5698c7e56")
	ya := scalar(t, "da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08")
	yb := scalar(t, "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d")
	same(t, "Ya", shareOf(ya, g), vectorYa)
	same(t, "Yb", shareOf(yb, g), vectorYb)
	for who, p := range map[string]struct {
		secret *ristretto255.Scalar
		share  string
	}{"A": {ya, vectorYb}, "B": {yb, vectorYa}} {
		point, err := sharedPoint(p.secret, unhex(t, p.share))
		if err != nil {
			t.Fatal(err)
		}
		same(t, "K of "+who, point, vectorPoint)
	}
	same(t, "ISK", sessionKey(session, unhex(t, vectorPoint), unhex(t, vectorYa), []byte("ADa"), unhex(t, vectorYb), []byte("ADb")), `
		b69effbf61b51d56401c0f65601abe428de8206feaaf0e32198896dc
		ae7b35cd2b38950a39dfd5d4a79164614c2984f7daa460b588c1e80c
		3fa2068af7900447`)
}

func TestDraftScalarMult(t *testing.T) {
	s := scalar(t, "7cd0e075fa7955ba52c02759a6c90dbbfc10e6d40aea8d283e407d88cf538a05")
	point, err := sharedPoint(s, unhex(t, "2c3c6b8c4f3800e7aef6864025b4ed79bd599117e427c41bd47d93d654b4a51c"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "product", point, "7c13645fe790a468f62c39beb7388e541d8405d1ade69d1778c5fe3e7f6b600e")
}

// TestOwnVectors holds what the draft leaves to us: the keys that come out of the session key. Machines of two versions must
// make the same.
func TestOwnVectors(t *testing.T) {
	terms := Terms{Code: []byte("K7QF2M9X"), Channel: Channel("lanjobs pairing/1", bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)), Session: []byte("session")}
	start := newStart(terms, []byte("claim"), scalar(t, "da3d23700a9e5699258aef94dc060dfda5ebb61f02a5ea77fad53f4ff0976d08"))
	share, leader, err := answer(terms, start.Share, []byte("claim"), scalar(t, "d2316b454718c35362d83d69df6320f38578ed5984651435e2949762d900b80d"))
	if err != nil {
		t.Fatal(err)
	}
	joiner, err := start.Finish(share, leader.Proof)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "joiner's proof", joiner.Proof, ownJoinerProof)
	same(t, "leader's proof", leader.Proof, ownLeaderProof)
}

const (
	ownJoinerProof = "c6a13686ed45c2138a4e71ca9bf8626bbe42e1d0b70764f0f22fc18d1eb639ae59cb357f9852f5e884d153e83e2659b96d3a3e08f5052d2ee7c7b6051b291d0d"
	ownLeaderProof = "82ca9e6ccdf8d2b1bd80446bf517f315331059d89eb51fb168cf79442f90d19d694742395339d2b57b9f542cae7fd59e7b1fd36392f0bbc048aa26a7a3127f24"
)
