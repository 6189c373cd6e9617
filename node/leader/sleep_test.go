package leader

import (
	"time"

	"lanjobs/fsm"
	"lanjobs/task"
	"lanjobs/transport"
)

// What the office's node says of its machine's sleep.

func (o *office) sleep(holding ...task.Token) {
	o.t.Helper()
	o.call("b", transport.MethodSleep, &transport.SleepRequest{Incarnation: 1, Holding: holding}, &transport.Ack{})
}

func (o *office) back(slept time.Duration, held ...task.Token) []task.Token {
	o.t.Helper()
	r := &transport.RegisterReply{}
	o.call("b", transport.MethodRegister, &transport.RegisterRequest{Info: task.NodeInfo{ID: "b", Name: "b", Slots: 4, Level: fsm.Level}, Incarnation: 1,
		Held: held, Slept: task.MillisOf(slept)}, r)
	return r.Keep
}

func (o *office) renew(tokens ...task.Token) (*transport.RenewReply, error) {
	o.t.Helper()
	r := &transport.RenewReply{}
	return r, o.try("b", transport.MethodRenew, &transport.RenewRequest{Incarnation: 1, Tokens: tokens}, r)
}
