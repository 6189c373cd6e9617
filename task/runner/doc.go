// Package runner runs attempts on this machine: it starts the command of a shard, keeps its output, serves the task's
// endpoint, and makes sure that nothing of it lives past its lease.
//
// It owns the runner's folder on disk, the guard process, the processes of all attempts, their environment, logs and
// sockets. It must never know of Raft, of the network, of who granted a lease or why: it is given an assignment, a spec and
// deadlines on the boot clock, and gives back how the attempt ended.
//
// # Two processes
//
//	agent (the node)                          guard (same binary, own session, one per node and binary)
//	  Runner: env, files, endpoint, exits  ⇄    starts commands, reads their output, obeys deadlines, kills trees
//	  backstop: obeys the same deadlines        keeps a journal of what it started and how it ended
//
// All commands are children of the guard, so a killed, frozen or upgraded agent takes none of them along and leaves none
// behind (R14). The two talk over a unix socket in the runner's folder; absolute boot-clock deadlines cross it and nothing
// else, and no Boot value is ever written to disk (I9).
//
// # States of an attempt, seen from the agent
//
//	Start ──► preparing ──► handed ──► running ──► ended ──► (Forget) gone
//	              │            │          │  ▲        ▲
//	              │            │          │  └ Extend │
//	              │            │          └─ Stop ────┤  LANJOBS_STOP written, SIGTERM, after the grace SIGKILL of the tree
//	              └────────────┴──────────────────────┘  no directory, no program, lapsed, stopped before it began; unmet: a path
//	                                                     or program that the stage needs is not there (needs.go)
//
// In the guard: starting → running → stopping (SIGTERM sent, a fixed kill time) → killed → ended → forgotten. The first
// reason to stop is the one that counts. An attempt has ended when its command's own process is gone, what it left behind has
// been killed and its log is complete; it never waits for a pipe that some child still holds (C29).
//
// # When something fails
//
//	agent killed       tasks go on; the guard stops each at its own deadline. A new agent reattaches: same execution, same process;
//	                   ends that happened meanwhile are delivered then.
//	agent frozen       as above; the guard needs nobody to obey deadlines and time-outs.
//	guard killed       the kernel kills the commands (parent-death signal), the agent the rest of their trees; the attempts end
//	                   as lease_lost ("its guard process died"), and the next start makes a new guard.
//	guard frozen       the agent kills what reaches its deadline and reports it. A start that the guard does not take within
//	                   10 s is not extended any more, so that it lapses before anyone else may run it.
//	both frozen, sleep every lapsed tree is dead within 250 ms of the thaw (I2): the guard polls the boot clock, which counts sleep.
//	both killed        the next Open kills what is left by the mark in its environment, and delivers the attempts as ended.
//	upgrade            a new binary starts its own guard; the old one finishes its tasks, then leaves.
//	no answer          a directory, program or env file on a dead share holds up the attempts that need it for 10 s, then they end unmet, or as
//	                   start_failed if it was no need that the stage states; however often it is tried, one thread waits for it.
//	hung task          with stall_timeout the guard stops it after so much silence (guard_stall.go), agent or not.
//	disk full          output is dropped and the log says so; Start fails; what runs goes on.
//	power cut          kills the tasks anyway; nothing here needs to survive it, so nothing is synced.
//	unkillable process the attempt ends after 5 s with a message that names it; the guard goes on trying.
//
// # What a command is given
//
// stdin is empty, umask 022, signals at their defaults, a session of its own, the environment of env.go and nothing else.
// `run` goes to `sh -e` (or the shell asked for), `command` to no shell at all: its arguments arrive byte for byte, after ${NAME}
// was replaced where NAME is a variable of the task. Its resources are limited where the job states them and the machine can
// (limits.go). When the command's own process ends, the attempt ends and whatever it left
// running is killed.
package runner
