#!/usr/bin/env bash
# Prints the table of ratios, then the figures of the ledger and the plan alone: a job of 1,000,000 shards, 100,000 jobs in a queue, placing
# on 10 machines (ns per decision must not grow with what is stored), 10,000 schedules.
set -euo pipefail
go test -tags bench ./cli -run '^TestRatios$' -count=1 -timeout 30m -v | grep -v '^=== RUN\|^---\|^PASS'
go test ./fsm -run '^$' -bench Million -benchtime 1x
go test ./fsm -run '^$' -bench Queue -benchtime 1x
go test ./node/plan -run '^$' -bench 'Place|TenThousand' -benchtime 200ms
