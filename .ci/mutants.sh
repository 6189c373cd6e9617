#!/usr/bin/env bash
# Breaks the code on purpose, one line at a time, in a copy of the tree; each mutant must turn its test red.
#
#   .ci/mutants.sh             all tables in .ci/mutants
#   .ci/mutants.sh fsm I4      the mutants of a table, or that guard an invariant, or whose name has the word
#
# A table is a text file of blocks with an empty line between them:
#
#   mutant: a name
#   guards: I4                 the invariant, requirement or case that it breaks
#   file:   fsm/apply.go
#   from:   if l == nil {      the text to replace, which must stand in the file exactly once; more from: lines follow it
#   to:     if false {         line by line; no to: line = nothing
#   test:   ./fsm TestName     package, -run pattern, then further flags of go test
#
# It ends with how many went red. A mutant that stays green is a law without a test; one that does not apply or compile is
# a table that is out of date. Both fail.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
tar -c --exclude=.git --exclude=bin . | tar -x -C "$tree"

red=0 failed=0 table=
wanted=("$@")

want() { # table name guards
	[[ ${#wanted[@]} -eq 0 ]] && return 0
	local w
	for w in "${wanted[@]}"; do
		[[ $1 == "$w" || " ${3//,/ } " == *" $w "* || $2 == *"$w"* ]] && return 0
	done
	return 1
}

complain() {
	echo "  FAIL  $table: $name: $1"
	failed=$((failed + 1))
}

mutate() {
	[[ -n $name ]] || return 0
	want "$table" "$name" "$guards" || return 0
	local path=$tree/$file text rest out began=$SECONDS
	[[ -f $path ]] || { complain "no file $file"; return; }
	text=$(cat "$path"; printf x) text=${text%x}
	rest=${text#*"$from"}
	if [[ -z $from || $rest == "$text" || ${rest#*"$from"} != "$rest" ]]; then
		complain "its text does not stand in $file exactly once"
		return
	fi
	printf '%s' "${text%%"$from"*}$to$rest" >"$path"
	# shellcheck disable=SC2086
	out=$(cd "$tree" && set -- $test && pkg=$1 run=$2 && shift 2 && go test -count=1 -timeout 180s -run "$run" "$@" "$pkg" 2>&1)
	local status=$?
	printf '%s' "$text" >"$path"
	if [[ $out == *"[build failed]"* || $out == *"[setup failed]"* ]]; then
		complain "does not compile: $(grep -m1 '\.go:' <<<"$out")"
	elif [[ $status -eq 0 ]]; then
		complain "stays green: no test of $test tells that $guards is broken"
	else
		red=$((red + 1))
		printf '  red   %-8s %s (%ds)\n' "$guards" "$name" $((SECONDS - began))
	fi
}

clear_block() { name='' guards='' file='' from='' to='' test='' lines=0 tos=0; }

for path in "$root"/.ci/mutants/*.txt; do
	table=$(basename "$path" .txt)
	clear_block
	while IFS= read -r line || [[ -n $line ]]; do
		value=${line#*:}
		case $line in
		mutant:*) mutate; clear_block; name=${value# } ;;
		guards:*) guards=${value# } ;;
		file:*) file=${value# } ;;
		from:*) [[ $((lines++)) -gt 0 ]] && from+=$'\n'; from+=${value# } ;;
		to:*) [[ $((tos++)) -gt 0 ]] && to+=$'\n'; to+=${value# } ;;
		test:*) test=${value# } ;;
		esac
	done <"$path"
	mutate
done
echo "$red mutants red, $failed not"
[[ $failed -eq 0 && $red -gt 0 ]]
