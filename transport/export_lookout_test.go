package transport

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// What the tests see of the search for clusters.
var (
	NewQuestion = newQuestion
	AnswerTo    = answerTo
	ReadFound   = readFound
)

// AnswerPace is answerPace.
type AnswerPace struct{ p answerPace }

// Allow is answerPace.allow.
func (p *AnswerPace) Allow(from netip.Addr, now time.Duration) bool { return p.p.allow(from, now) }

// Askers tells from where to where questions go.
func Askers(table []Interface) string {
	var out []string
	for _, a := range askers(table) {
		text := a.from.String() + " to"
		for _, to := range a.to {
			text += fmt.Sprint(" ", to)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
