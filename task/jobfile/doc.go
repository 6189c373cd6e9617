// Package jobfile turns a job file (YAML or JSON) into a task.Spec and back into words when it cannot.
//
// It owns the format: which keys exist, their types, defaults and synonyms (one table, schema.go), and the rules that
// hold between them (Check). It never starts, stores or sends anything, reads no clock, and touches files only through
// the opener it is handed.
//
// A file passes through these steps; every step goes on after a fault, so that all faults are told at once:
//
//	syntax   size, UTF-8, control characters, then the YAML library for a tree of nodes, one document, no bombs
//	walk     the tree along the schema: unknown and doubled keys, types; values land in scopes, places in a map
//	build    scopes to a Spec: inheritance from the top level, defaults, globs and lists of lines expanded
//	rules    what must hold for any Spec, wherever it came from; Load lends the rules the places of the walk
//
// A Spec that arrives over the wire has not been through the first three steps, so the server calls Check, which is the
// fourth alone. What Load accepts, Check accepts.
//
// The YAML library is used for its tree only: its own decoding would change texts (1.10, NO, 010) on the way.
package jobfile
