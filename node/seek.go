package node

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"lanjobs/task/runner"
	"lanjobs/transport"
)

// FindClusters looks for clusters on the local network; see transport.Discover.
func FindClusters(ctx context.Context, cfg Config) ([]transport.Found, error) {
	if cfg.Clock == nil {
		cfg.Clock = runner.SystemClock()
	}
	ports := []uint16{transport.DefaultPort}
	if addr, err := listenAddr(cfg, Settings{}); err == nil && addr.Port() != transport.DefaultPort {
		ports = append(ports, addr.Port()) // whoever chose another port here may have done so there
	}
	return transport.Discover(ctx, transport.DiscoverConfig{Interfaces: transport.SystemInterfaces, Ports: ports, Clock: cfg.Clock})
}

// lookupLead is how long the system may take to resolve a name before the local network is asked as well: without mDNS a name
// like mini-1.local takes many seconds to fail.
const lookupLead = 500 * time.Millisecond

// findPeer gives the address of a member that was named by its node name and that the system's resolver does not know; in all
// other cases what was typed.
func findPeer(ctx context.Context, cfg Config, peer string) string {
	label, port, ok := nodeLabel(peer)
	if !ok {
		return peer
	}
	host := peer
	if port != "" {
		host, _, _ = net.SplitHostPort(peer)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resolved := make(chan bool, 1)
	go func() {
		_, err := net.DefaultResolver.LookupHost(ctx, host)
		resolved <- err == nil
	}()
	timer := cfg.Clock.NewTimer(lookupLead)
	defer timer.Stop()
	select {
	case known := <-resolved:
		if known {
			return peer
		}
	case <-timer.C():
	case <-ctx.Done():
		return peer
	}
	found, err := FindClusters(ctx, cfg)
	if err != nil {
		return peer
	}
	return memberAt(found, label, port, peer)
}

// memberAt gives the address of the one member that has a name, else what was typed: with two of the name the person decides.
func memberAt(found []transport.Found, label, port, typed string) string {
	at := ""
	for _, f := range found {
		if f.Node != label {
			continue
		}
		if at != "" {
			return typed
		}
		at = f.Addr
	}
	if at == "" {
		return typed
	}
	if port == "" || port == strconv.Itoa(transport.DefaultPort) {
		return at // nobody has typed it, and the member says where it listens
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return typed
	}
	return net.JoinHostPort(host, port)
}

// nodeLabel takes the node name out of NAME, NAME.local or either with :PORT; false for addresses and for names that only the
// system's resolver can know.
func nodeLabel(peer string) (label, port string, ok bool) {
	host := peer
	if h, p, err := net.SplitHostPort(peer); err == nil {
		host, port = h, p
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "", "", false
	}
	label = strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), ".local")
	if label == "" || label != CleanName(label) {
		return "", "", false
	}
	return label, port, true
}
