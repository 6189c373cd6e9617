#!/usr/bin/env bash
# Runs every fuzz target for so many inputs (20000), the slow ones for a tenth of them. Not for a time: at its end, go test before 1.27 may
# call a worker that is in the middle of an input a failure ("context deadline exceeded"), the more often the busier its machine is.
set -euo pipefail
inputs=${1:-20000}
for dir in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
	for target in $(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | sort -u); do
		echo "$dir $target"
		n=$inputs
		case $target in FuzzHistory | FuzzRequests) n=$((inputs / 10)) ;; esac
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "${n}x" -fuzzminimizetime 100x
	done
done
