package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"lanjobs/node/simulate"
	"lanjobs/task"
)

func simulateRow() *command {
	return &command{
		name: "simulate", operands: "[FILE|-]", max: 1, short: "play a scenario with the real rules in virtual time; nothing runs",
		long: `Shows who gets which shard, what happens when machines are lost and come back, and what a second trigger skips by its keys. The
rules are those of a cluster: the same ledger and the same plan. The same scenario always gives the same text.
Without FILE the example of every book: 8 shards on A, B and C by modulo, B lost at 4, again at 8 and 9. As a file:
  {name: textbook, workers: [A, B, C], slots: 8, shards: 8, balance: modulo, ttl: 3, heartbeat: 1, run_for: 1,
   window: 7, triggers: [0, 8, 9], keyed: true, lost: {B: [4]}, back: {B: [12]}, until: 9}
All times are ticks; balance is one of those of lanjobs queue set.
  lanjobs simulate      lanjobs simulate scenario.yaml`,
		run: runSimulate,
	}
}

// maxScenario bounds a scenario's file.
const maxScenario = 64 << 10

func runSimulate(_ context.Context, c *call) error {
	scenario := simulate.Textbook()
	if len(c.args) > 0 {
		data, err := c.readScenario(c.args[0])
		if err != nil {
			return usage(c.path, "%v", err)
		}
		if scenario, err = simulate.Parse(data); err != nil {
			p := *task.Explain(err)
			p.Detail = filepath.Base(c.args[0]) + ": " + p.Detail
			return &p
		}
	}
	return simulate.Run(scenario, c.stdout)
}

func (c *call) readScenario(name string) ([]byte, error) {
	var data []byte
	var err error
	if name == "-" {
		data, err = io.ReadAll(io.LimitReader(c.stdin, maxScenario+1))
	} else {
		data, err = c.readLimited(c.inDir(name), maxScenario+1)
	}
	if err == nil && len(data) > maxScenario {
		err = errors.New(name + " is larger than 64 KiB")
	}
	return data, err
}
