// Package memnet is a network inside one process, for tests in a testing/synctest bubble: hosts named by NodeID, streams,
// datagrams and calls between them, and the faults that a LAN of sleeping machines has.
//
// Every wait in it blocks durably in a bubble, so that virtual time runs on. Nothing listens on a real socket. It uses the
// clock of package time directly, because the deadlines of a net.Conn live on it; in a bubble that clock is virtual.
//
// A datagram to an IPv4 address that ends in .255 is a broadcast in that /24.
//
// What a fault does:
//
//	Cut, CutOneWay, Isolate   packets are lost. Streams keep what was written and deliver it after the heal, as TCP does by
//	                          sending again; a new connection waits for the heal; datagrams are gone; a request is gone when
//	                          its caller gives up, a reply likewise.
//	Freeze                    a stopped process behind a running kernel: connections to it open, everything sent to it waits
//	                          until Thaw, even if the sender has long given up; nothing leaves it. Its goroutines run on.
//	BlackHole                 a machine that went away without a word: what is sent to it vanishes, and the connections it had
//	                          never come back; they are reset at the first write after Restore.
//	Delay                     everything takes d longer, each way, in order.
//	Kill                      the process dies: its listeners and connections close, the other ends see a reset.
//	Move                      the machine has another address now; connections made to the old one are dead without a word.
package memnet
