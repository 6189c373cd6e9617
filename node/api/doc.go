// Package api is the HTTP API of a node (transport/api.go lists it): what a person's commands, the dashboard and scripts ask.
//
// It owns the words in which the cluster explains itself: views, reasons, problems. It holds no rule of the ledger and no
// decision of the leader; it must never know how a connection was secured, only who is asking (WithBy, WithClient), and never where a
// peer is. What it needs of its node are the small interfaces of contract.go.
//
//	request ─ServeHTTP─> door ──> route ─local──> handler            this machine's own affairs, streams
//	                     (who,     ├────read───> leads here?  handler on the applied state
//	                     limits)   │             else forward; no leader: own copy, with HeaderStale
//	                               └────write──> leads here?  handler proposes, waits for the commit
//	                                             else forward; no leader: again until the caller's time is over
//	member ─ServeForwarded─> the same routes, once: a forwarded request is never passed on again
//
// Why something does not run is asked of plan itself (plan.Explain, plan.Fits), so that what is said follows the rules by which
// shards are placed; this package adds only what it alone knows: for how long a machine is silent, a label of nearly that name.
//
// # What fails
//
//	the leader goes while it writes   the outcome is unknown: the request is repeated with its request id, which does it once
//	no leader                         reads answer from this member's copy and say how old it is, but never "not found": what is
//	                                  not in an old copy may exist. Writes wait, then say which voters are missing
//	no copy here (plain worker)       then nothing can be answered without a leader
//	the machine with a log is off     the problem names it and brings the tail that the ledger has
//	a hostile caller                  bodies, pages, streams and waits are bounded; a panic is one answer 500 and one log line
//	a slow caller                     nothing is held while a reply is written: views are built first, events are read from files
package api
