package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lanjobs/task"
)

// clockWarn is how far apart wall clocks may be.
const clockWarn = 30 * time.Second

func binary(f *Facts) task.Finding {
	if f.Node == nil || !f.Node.Member {
		return ok(f.Version)
	}
	var others []string
	for _, p := range f.Node.Peers {
		if p.Version != "" && p.Version != f.Version {
			others = append(others, p.Name+" "+p.Version)
		}
	}
	if len(others) > 0 {
		return warn(fmt.Sprintf("%s here; %s", f.Version, strings.Join(others, ", ")), "Bring all machines to one version: lanjobs service install, with the new program, on each")
	}
	return ok(fmt.Sprintf("%s; whole cluster %s", f.Version, f.Version))
}

func clock(f *Facts) task.Finding {
	var far, told []string
	for _, p := range f.Node.Peers {
		switch {
		case !p.HasClock:
		case p.Ahead.Abs() > clockWarn:
			word := "ahead of"
			if p.Ahead < 0 {
				word = "behind"
			}
			far = append(far, fmt.Sprintf("%s is %s %s %s", p.Name, Apart(p.Ahead), word, f.Node.Name))
		default:
			told = append(told, p.Name)
		}
	}
	switch {
	case len(far) > 0:
		return warn(strings.Join(far, ", ")+". Leases do not use clocks; schedules and the times in logs do.", setClock(f.OS))
	case len(told) > 0:
		return ok("within 30 s of " + strings.Join(told, ", "))
	case len(f.Node.Peers) == 0:
		return ok("there is no other machine to compare with")
	}
	return unknown("no other machine told the time")
}

// Apart says how far apart two clocks are, as people say it.
func Apart(d time.Duration) string {
	const day, year = 24 * time.Hour, 365 * 24 * time.Hour
	switch d = d.Abs(); {
	case d >= 2*year:
		return fmt.Sprintf("%d years", d/year)
	case d >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	}
	return d.Round(time.Second).String()
}

func setClock(goos string) string {
	switch goos {
	case "darwin":
		return "sudo sntp -sS time.apple.com, on the one that is wrong"
	case "windows":
		return "w32tm /resync, on the one that is wrong"
	}
	return "sudo timedatectl set-ntp true, on the one that is wrong"
}

// ports tells whether the cluster's port is reached both ways, TCP and UDP.
func ports(f *Facts) task.Finding {
	n := f.Node
	if !n.Member {
		return ok("this machine only: nothing listens on the network")
	}
	var tcp, udp, fine []string
	for _, p := range n.Peers {
		switch {
		case (p.Away > 0 || p.Down) && p.Err != nil: // see network
		case p.Err != nil:
			tcp = append(tcp, fmt.Sprintf("%s is not reached from here: %v", p.Name, p.Err))
		case p.Probed && p.Reached == 0 && len(p.Failed) > 0:
			tcp = append(tcp, fmt.Sprintf("%s does not reach %s (%s)", p.Name, p.Failed[0].Addr, p.Failed[0].Why))
		case p.Sent > 0 && p.Got == 0 || p.BackSent > 0 && p.BackGot == 0:
			udp = append(udp, p.Name)
		case p.Probed:
			fine = append(fine, p.Name)
		}
	}
	switch {
	case len(tcp) > 0:
		return bad(strings.Join(tcp, "; "), openPort(f.OS, n.Port))
	case len(udp) > 0:
		return warn(fmt.Sprintf("%d/udp does not get through to or from %s; TCP does, so all works, but slower", n.Port, strings.Join(udp, ", ")), openPort(f.OS, n.Port))
	case len(fine) > 0:
		return ok(fmt.Sprintf("%d/tcp and %d/udp reachable both ways: %s", n.Port, n.Port, strings.Join(fine, ", ")))
	case len(n.Peers) == 0:
		return ok(fmt.Sprintf("%d/tcp and %d/udp are open; no other machine to try them", n.Port, n.Port))
	}
	return unknown("no other machine answers to try them")
}

func openPort(goos string, port int) string {
	switch goos {
	case "windows":
		return "As administrator: lanjobs doctor --fix"
	case "darwin":
		return "System Settings > Network > Firewall: allow lanjobs; and Privacy & Security > Local Network"
	}
	return fmt.Sprintf("sudo ufw allow %d   or: sudo firewall-cmd --permanent --add-port=%d/tcp --add-port=%d/udp && sudo firewall-cmd --reload", port, port, port)
}

// lossWarn is the share of datagrams that may be lost before it is worth a word.
const lossWarn = 0.02

func network(f *Facts) task.Finding {
	var lossy, silent []string
	tried := 0
	for _, p := range f.Node.Peers {
		sent, got := p.Sent+p.BackSent, p.Got+p.BackGot
		switch {
		case p.Away > 0:
			silent = append(silent, fmt.Sprintf("%s (for %s)", p.Name, p.Away.Round(time.Second)))
		case p.Down:
			silent = append(silent, p.Name+" (its node does not run)")
		case sent > 0 && got > 0:
			tried += sent
			if lost := 1 - float64(got)/float64(sent); lost > lossWarn {
				lossy = append(lossy, fmt.Sprintf("%s: %.0f%% of %d lost", p.Name, 100*lost, sent))
			}
		}
	}
	text := "gossip UDP to " + strings.Join(lossy, ", ")
	switch {
	case len(lossy) > 0:
		return warn(text, "A cable in the place of Wi-Fi, or a nearer access point")
	case len(silent) > 0:
		return warn("silent: "+strings.Join(silent, ", "), "Wake or start them; for good: lanjobs node rm NAME")
	case tried > 0:
		return ok(fmt.Sprintf("no gossip datagram lost of %d", tried))
	}
	return ok("nothing to measure")
}

// apart are interfaces that other machines of the network do not reach: containers, virtual machines, tunnels.
var apart = []string{"docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "podman", "cni", "flannel", "cali", "lxc", "lxd", "tun", "tap", "wg", "utun", "tailscale", "zt", "ppp", "ipsec", "vEthernet"}

func address(f *Facts) task.Finding {
	n := f.Node
	if !n.Member {
		return ok("this machine only: it has no address in a cluster")
	}
	if len(n.Addrs) == 0 {
		return bad("no usable network interface", "Connect this machine to the network")
	}
	first, usual := n.Addrs[0], []string{}
	for _, a := range n.Addrs {
		if !virtual(a.Interface) && !slices.Contains(usual, a.Interface) {
			usual = append(usual, a.Interface)
		}
	}
	switch {
	case virtual(first.Interface) && len(usual) > 0:
		return warn(fmt.Sprintf("%s, which others try first, is of %s: a tunnel or a network of containers", first.Addr, first.Interface), "Name the address of the local network: serve --listen ADDR:PORT")
	case len(usual) > 1:
		return ok(fmt.Sprintf("others try %s first (%s), then those of %s", first.Addr, first.Interface, strings.Join(usual[1:], ", ")))
	}
	return ok(fmt.Sprintf("others try %s first (%s)", first.Addr, cmp.Or(first.Interface, "unknown interface")))
}

func virtual(name string) bool {
	return slices.ContainsFunc(apart, func(p string) bool { return strings.HasPrefix(strings.ToLower(name), strings.ToLower(p)) })
}

func certificate(f *Facts) task.Finding {
	if !f.Node.Member {
		return ok("this machine only: it needs none")
	}
	return ok("that of this machine does not end by time; removing a machine ends it")
}

func quorum(f *Facts) task.Finding {
	n := f.Node
	if !n.Member {
		return ok("this machine only")
	}
	answering, away := 0, []string{}
	for _, v := range n.Voters {
		if v.Answers {
			answering++
		} else {
			away = append(away, v.Name)
		}
	}
	all, need := len(n.Voters), len(n.Voters)/2+1
	text := fmt.Sprintf("%d of %d voters answer, %d are needed", answering, all, need)
	switch {
	case all == 0:
		return unknown("this machine keeps no log and does not know the voters")
	case answering < need:
		return bad(text+": nothing can be changed", "Wake "+strings.Join(away, " or ")+"; lost for good: lanjobs help lost-quorum")
	case len(away) > 0:
		return warn(fmt.Sprintf("%s: survives %s more", text, failures(answering-need)), "Wake "+strings.Join(away, " and "))
	case all == 1 && n.Members > 1:
		return warn("1 voter: the cluster stands still while it is away", "A third machine makes it 3 voters: lanjobs token create")
	case all == 1:
		return ok("1 voter: this machine only")
	}
	return ok(fmt.Sprintf("%d voters: survives %s", all, failures(answering-need)))
}

// andList is "a", "a and b", "a, b and c".
func andList(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}

func failures(n int) string {
	switch n {
	case 0:
		return "no failure"
	case 1:
		return "1 failure"
	}
	return fmt.Sprintf("%d failures", n)
}

// voters tells whether two of them are one machine, which fails as one.
func voters(f *Facts) task.Finding {
	by := map[string][]string{}
	untold := 0
	for _, v := range f.Node.Voters {
		if v.Host == "" {
			untold++
			continue
		}
		by[v.Host] = append(by[v.Host], v.Name)
	}
	var shared []string
	for _, names := range by {
		if len(names) > 1 {
			shared = append(shared, andList(names))
		}
	}
	slices.Sort(shared)
	switch {
	case len(shared) > 0:
		return warn(strings.Join(shared, "; ")+" vote and are one machine: they fail together", "lanjobs node demote one of them")
	case f.Node.Member && len(f.Node.Voters) == 0:
		return unknown("this machine keeps no log and does not know the voters")
	case len(f.Node.Voters) < 2:
		return ok("one voter")
	case untold > 0:
		return unknown("not all voters tell which machine they are on")
	}
	return ok("each voter is a machine of its own")
}
