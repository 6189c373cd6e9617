package transport

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
)

// maxMeta is the size of a node's gossip metadata; memberlist panics above 512, and each round of gossip carries it.
const maxMeta = 300

const (
	maxMetaName    = 63
	maxMetaVersion = 32
	metaFormat     = 1
	metaVoter      = 1 << 0 // flag
)

// nodeMeta is what a node says of itself in gossip. Its id and session are its name there.
//
//	format | flags | level uint16 | name: length, text | version: length, text | count | each address: length, bytes, port uint16
//	| generation uint64
//
// Later formats append only.
type nodeMeta struct {
	Name    string
	Version string
	Level   int
	Voter   bool
	Addrs   []netip.AddrPort
	// Generation of the cluster that the node is of; 0 or 1 = the first.
	Generation uint64
}

// encode writes at most maxMeta bytes, whatever is in it.
func (m nodeMeta) encode() []byte {
	var flags byte
	if m.Voter {
		flags |= metaVoter
	}
	b := []byte{metaFormat, flags}
	b = binary.BigEndian.AppendUint16(b, uint16(m.Level))
	for _, s := range []string{cutText(m.Name, maxMetaName), cutText(m.Version, maxMetaVersion)} {
		b = append(append(b, byte(len(s))), s...)
	}
	addrs := m.Addrs[:min(len(m.Addrs), MaxAddrs)]
	b = append(b, byte(len(addrs)))
	for _, a := range addrs {
		ip := a.Addr().AsSlice()
		b = append(append(b, byte(len(ip))), ip...)
		b = binary.BigEndian.AppendUint16(b, a.Port())
	}
	return binary.BigEndian.AppendUint64(b, m.Generation)
}

func cutText(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

var errBadMeta = errors.New("gossip metadata not understood")

func decodeMeta(b []byte) (m nodeMeta, err error) {
	take := func(n int) []byte {
		if err != nil || len(b) < n {
			err = errBadMeta
			return make([]byte, n)
		}
		var part []byte
		part, b = b[:n], b[n:]
		return part
	}
	head := take(4)
	if head[0] < metaFormat {
		return m, errBadMeta
	}
	m.Voter = head[1]&metaVoter != 0
	m.Level = int(binary.BigEndian.Uint16(head[2:]))
	m.Name = string(take(int(take(1)[0])))
	m.Version = string(take(int(take(1)[0])))
	for range min(take(1)[0], MaxAddrs) {
		ip, ok := netip.AddrFromSlice(take(int(take(1)[0])))
		port := binary.BigEndian.Uint16(take(2))
		if ok {
			m.Addrs = append(m.Addrs, netip.AddrPortFrom(ip, port))
		}
	}
	if len(b) > 0 { // the first version ended here
		m.Generation = binary.BigEndian.Uint64(take(8))
	}
	return m, err
}
