// Package pake lets two machines that share a short code find out whether they do, and agree on a key, over a network in which
// everything may be read and altered. It is pure: messages in, messages out; it sends nothing and knows no clock.
//
// The construction is CPace of draft-irtf-cfrg-cpace-21, suite CPACE-RISTR255-SHA512 in its initiator-responder form, with
// explicit key confirmation. Both sides turn the code, the channel and the session into a generator of ristretto255, exchange
// Diffie-Hellman shares of it, and hash the result with all that was said:
//
//	joiner                                         leader
//	Start: share Ya, claim       --------------->
//	                             <---------------  Answer: share Yb, proof Tb
//	Finish: checks Tb; proof Ta  --------------->
//	                                               Check: checks Ta
//	                             <---------------  Seal: the secret, under a key of this exchange
//
// What a listener sees tells nothing about the code: every code fits. Who takes part may try one code per exchange, and has no
// second try with what the other side said: a Start is spent by its first Finish. Both sides get the same keys only if
// code, channel, session, claim and both shares are the same on both sides, so whoever stands between them and alters any of it
// makes it fail. The proofs have a key for each direction; a message that is sent back to its sender proves nothing.
//
// The group is github.com/gtank/ristretto255: prime order, so no point of small order exists; encodings that are not canonical
// are refused by it, the identity by this package.
package pake
