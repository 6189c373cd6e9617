package node

import (
	"sync"
	"time"

	"lanjobs/task/runner"
	"lanjobs/transport"
)

// How old an answer about this machine may be. Asking for the battery starts a program on some systems.
const (
	batteryEvery = 15 * time.Second
	macsEvery    = 30 * time.Second
)

// power is what this machine says of its battery and network cards, read now and then. The zero value has read nothing.
type power struct {
	mu     sync.Mutex // guards all below
	asked  bool
	at     time.Duration // awake clock
	laptop bool
	on     bool

	macsAt   time.Duration
	macs     []string
	macsRead bool
}

// read tells whether there is a battery, and whether the machine runs on it. One that has none is not asked again: batteries do
// not come and go while a machine runs.
func (p *power) read(now time.Duration) (laptop, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.asked || p.laptop && now-p.at >= batteryEvery {
		p.asked, p.at = true, now
		p.laptop, p.on = runner.Battery()
	}
	return p.laptop, p.on
}

func (m *machine) onBattery() bool {
	_, on := m.power.read(m.clock.Awake())
	return on
}

// macs are the addresses by which this machine's network cards can be woken. Cards do come and go.
func (m *machine) macs() []string {
	p, now := &m.power, m.clock.Awake()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.macsRead || now-p.macsAt >= macsEvery {
		p.macsRead, p.macsAt = true, now
		if table, err := transport.SystemInterfaces(); err == nil {
			p.macs = transport.WakeMACs(table)
		}
	}
	return p.macs
}
