package node

import (
	"strings"
	"testing"
	"time"
)

func TestWhatStatusSaysOfClocks(t *testing.T) {
	const year = 365 * 24 * time.Hour
	type ahead = map[string]time.Duration
	right := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		now   time.Time
		ahead ahead
		want  string // "" = nothing is said
	}{
		{right, ahead{}, ""},
		{right, ahead{"b": time.Minute, "c": -4 * time.Minute}, ""},
		{right, ahead{"b": 0, "c": 73 * year}, "that of c is 73 years ahead: one of them is wrong"},
		{right, ahead{"b": 0, "c": -time.Hour, "d": 0}, "that of c is 1h0m0s behind. Leases"},
		{right, ahead{"b": -3 * 24 * time.Hour}, "that of b is 3 days behind: one of them is wrong"},
		{right, ahead{"b": -73 * year, "c": -73 * year}, "2026-11-30 12:00 UTC; that of b is 73 years behind, that of c is 73 years behind: this one is probably wrong"},
		{time.Unix(60, 0), ahead{}, "shows 1970-01-01 00:01 UTC, before this version was made. Leases"},
		{time.Unix(60, 0), ahead{"b": 56 * year}, "before this version was made; that of b is 56 years ahead"},
		{time.Unix(60, 0), ahead{"b": 0}, "before this version was made"},
	} {
		got := clockNote(c.now, c.ahead)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, %v: %s", c.now.UTC(), c.ahead, got)
		}
	}
}
