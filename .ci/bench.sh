#!/usr/bin/env bash
# Prints the table of ratios, then the figures of a job of 1,000,000 shards.
set -euo pipefail
go test -tags bench ./cli -run '^TestRatios$' -count=1 -timeout 30m -v | grep -v '^=== RUN\|^---\|^PASS'
go test ./fsm -run '^$' -bench Million -benchtime 1x
