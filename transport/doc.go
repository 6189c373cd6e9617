// Package transport is the wire: who may talk to whom, where a peer is right now, and how bytes get there.
//
// It owns identity (certificates, join tokens, pairing), the address book, gossip, the one listening port with its protocols,
// Raft's streams, and calls between nodes and from clients. It knows nothing of jobs beyond the messages it carries, and
// nothing of Raft's state: a peer is a UUID, and whoever answers must prove to be that UUID of this cluster.
package transport
