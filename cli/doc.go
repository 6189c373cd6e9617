// Package cli is the mouth of lanjobs: it reads what a person types, asks a node, and says the answer in words, tables or JSON.
//
// It owns the command tree, flags, help, exit codes, texts for people, and the two ways in which a command brings up a node:
// in the background (submit, init, join) and inside the process (run). It must never know how a cluster works: everything it
// learns comes through the HTTP API of package transport or the few functions of package node that nodefacade.go lists.
//
// # The way of one command
//
//	Main → system (the world outside: streams, clock, signals, package node) → permute (flags to the front of each level)
//	     → urfave/cli (parsing only) → command.run with a call (what was typed) → client (API of a node) → render → exit code
//
// A command is a row of tree.go and one file; its row says which arguments and which of the common flags it takes, so that a
// flag which would do nothing is refused and never ignored. Help, completion and the tests are generated from the same rows.
//
// # Errors
//
// A command returns an error and prints none. hint.go turns it into text (what happened, why, what to type) and an exit code:
// 0 done, 1 the answer is bad, 2 wrong usage, 3 no node here, 4 not allowed, 5 no such thing, 6 try again, 7 conflict,
// 8 time is up, 130 Ctrl-C. Data goes to standard output, talk to standard error, so that id=$(lanjobs submit F) always works.
//
// # When something fails
//
//	no node here          exit 3 with the three ways in; submit starts one, run needs none
//	no leader             a write is repeated with its request id for 30 s, a read for 5 s, then exit 6; a follower keeps waiting
//	node goes away        the same: the socket is asked again within the same times
//	Ctrl-C, --timeout     the command leaves, the job goes on (130, 8); only a job inside this process is stopped with it
//	output cannot be read said once on standard error, tried again while its attempt lives
package cli
