package transport

import (
	"bytes"
	"errors"
	"testing"
)

// A refusal whose reason is in no table is a refusal all the same.
func TestARefusalForAnUnlistedReasonIsNoWelcome(t *testing.T) {
	var wire bytes.Buffer
	if err := writeAnswer(&wire, &Refusal{By: "a", To: "b", Reason: errors.New("something new"), Detail: "why"}); err != nil {
		t.Fatal(err)
	}
	var refusal *Refusal
	if err := readAnswer(&wire, "a", "b"); !errors.As(err, &refusal) || refusal.Detail != "why" {
		t.Fatalf("the dialler read %v", err)
	}
}
