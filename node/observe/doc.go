// Package observe keeps what has happened: the audit log, the one place where an event of the ledger becomes a line on disk
// and a line in the log (R37).
//
// It owns the folder <datadir>/audit. It never decides anything, never changes an event, and knows nothing of Raft beyond
// the index that events carry. The folder belongs to one Raft log: when a node leaves its log behind (join, restore), the
// folder is put aside with it, since positions of another log mean other events.
//
//	Apply ──Append──> queue (bounded) ──> writer ──> audit.jsonl ──full or old──> audit-<first index>-<time>.jsonl
//	                                        │                                          │
//	                                        └─> slog, one line per event               └─> the oldest is removed
//	Query, Follow ──────────────────────────────read the files
//
// # Each event once
//
// Every replica makes the same events, named by (Index, N). Apply hands on those of each entry, again after a restart,
// from the last snapshot on. What is in the file already is skipped: the last whole line says how far that is. So a line
// that was not yet on disk when the power went is written again, as long as its entry is replayed. That is why Sync must
// have returned before a snapshot of the state is kept: entries in a snapshot are never replayed.
//
// # What fails
//
//	the writer is slower than Apply   the queue holds some 65,000 events, then Append waits: Apply is slowed, nothing is lost
//	the disk refuses (full)           lines wait in memory, up to 4 MiB; what is beyond is counted, and once the disk takes
//	                                  lines again an audit.gap line says which are missing. Apply goes on: an audit log on
//	                                  one member is not worth the cluster, and the other members have the lines
//	a crash in the middle of a line   the torn line is cut off when the log is opened; its event comes again
//	a damaged line further up         the file is put among the old ones as it is; lines after the damage come again if
//	                                  their entries are replayed, and readers take each position once
//	a state taken over as a snapshot  Jumped writes an audit.gap line: this member never applied those entries
//	a reader is slow                  it reads files, so nobody waits for it. When files it has not read are removed it gets
//	                                  an audit.gap event
package observe
