package transport

// SleepRequest tells the leader that the calling node's machine goes to sleep (R16). Nothing is placed there until it registers
// again.
type SleepRequest struct {
	Incarnation uint64
	// Holding is all that the node runs or has a report of. It asks for nothing any more, so what it was granted besides never reached
	// it, and is free.
	Holding Tokens
}

// WakeRequest asks a member to send Wake-on-LAN packets on every network that it is in.
type WakeRequest struct{ MACs []string }

// WakeReply tells where they went: the broadcast addresses.
type WakeReply struct{ Sent []string }
