package transport_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"lanjobs/task"
	"lanjobs/transport"
)

func TestJoinTokenGoesThroughHands(t *testing.T) {
	l := newLAN(t, "home")
	token := transport.NewJoinToken(l.ca.Fingerprint())
	text := token.String()
	if !strings.HasPrefix(text, "LJ1-") || strings.ContainsAny(text[4:], "ILOU") {
		t.Errorf("token %s", text)
	}
	for _, way := range []string{
		text, strings.ToLower(text), "  " + text + "\r\n", strings.NewReplacer("0", "o", "1", "l").Replace(text),
	} {
		got, err := transport.ParseJoinToken(way)
		if err != nil || got != token {
			t.Errorf("%q: %+v, %v", way, got, err)
		}
	}
	if !token.Matches(l.ca.Fingerprint()) || token.Matches(newLAN(t, "home").ca.Fingerprint()) {
		t.Error("the pin does not tell clusters apart")
	}
	if another := transport.NewJoinToken(l.ca.Fingerprint()); another.Secret == token.Secret {
		t.Error("two tokens have one secret")
	}
}

func TestJoinTokenFaultsAreNamed(t *testing.T) {
	text := transport.NewJoinToken(newLAN(t, "home").ca.Fingerprint()).String()
	other := "0"
	if text[20] == '0' {
		other = "7"
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "is empty"},
		{"blanks", " \t\n", "is empty"},
		{"broken over two lines", text[:30] + "\n" + text[30:], "space or line break"},
		{"a space", text[:30] + " " + text[30:], "space or line break"},
		{"something else", "SWMTKN-1-abc", "no join token"},
		{"another version", "LJ2" + text[3:], "no join token"},
		{"its first half", text[:31], "cut off: 31 characters of"},
		{"cut by one", text[:len(text)-1], "cut off"},
		{"pasted twice", text + text, "too long"},
		{"a slip", text[:20] + other + text[21:], "typing error"},
		{"a sign that no token has", text[:20] + "!" + text[21:], "typing error"},
		{"hyphen moved", text[:29] + "-" + text[29:30] + text[31:], "typing error"},
	} {
		_, err := transport.ParseJoinToken(c.text)
		if !errors.Is(err, task.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err != nil && len(c.text) > 8 && strings.Contains(err.Error(), c.text[4:8]) {
			t.Errorf("%s: the error repeats the token: %v", c.name, err)
		}
	}
}

func TestOnlyTheHashOfASecretIsNeeded(t *testing.T) {
	token := transport.NewJoinToken(newLAN(t, "home").ca.Fingerprint())
	hash := transport.HashSecret(token.Secret)
	if !bytes.Equal(transport.HashSecret(token.Secret), hash) {
		t.Error("the right secret does not match")
	}
	for _, wrong := range []string{"", " ", token.Secret[:25], token.Secret + "0", strings.ToLower(token.Secret), string(hash)} {
		if bytes.Equal(transport.HashSecret(wrong), hash) {
			t.Errorf("%q matches", wrong)
		}
	}
	if bytes.Equal(transport.HashSecret(""), nil) {
		t.Error("no secret matches no hash")
	}
}

func FuzzParseJoinToken(f *testing.F) {
	token := transport.JoinToken{Pin: [16]byte{1, 2, 3}, Secret: "00112233445566778899AABBCC"}
	f.Add(token.String())
	f.Add("LJ1-")
	f.Add("lj1-ÿ-" + strings.Repeat("ı", 60))
	f.Fuzz(func(t *testing.T, text string) {
		got, err := transport.ParseJoinToken(text)
		if err != nil {
			return
		}
		again, err := transport.ParseJoinToken(got.String())
		if err != nil || again != got {
			t.Errorf("%q gives %+v, written and read again %+v, %v", text, got, again, err)
		}
	})
}
