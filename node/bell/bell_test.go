package bell_test

import (
	"testing"

	"lanjobs/node/bell"
)

func TestBellWakesAllThatAskedBefore(t *testing.T) {
	var b bell.Bell
	b.Ring() // nobody waits
	one, two := b.Changed(), b.Changed()
	select {
	case <-one:
		t.Fatal("it rang before they asked")
	default:
	}
	b.Ring()
	<-one
	<-two
	select {
	case <-b.Changed():
		t.Fatal("an old ring is heard again")
	default:
	}
}
