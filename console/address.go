package console

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxHops is the greatest number of entries of X-Forwarded-For that are read. maxHop is
// the greatest length of an entry in bytes: an IPv6 address with zone, brackets and port
// is shorter.
const (
	maxHops = 32
	maxHop  = 100
)

// addressOf returns the address of the caller, by which sign-in attempts are limited.
// This is the address of the connection or, behind a trusted proxy, the last address in
// X-Forwarded-For that is not a trusted proxy's. The header is not used for anything
// else, because a caller can forge it.
func (s *Server) addressOf(r *http.Request) string {
	connection, ok := parseHop(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	if !s.trusts(connection) {
		return connection.String()
	}
	hops := 0
	for _, line := range slices.Backward(r.Header.Values("X-Forwarded-For")) {
		for more := true; more; hops++ {
			if hops == maxHops {
				return connection.String()
			}
			var hop string
			at := strings.LastIndexByte(line, ',')
			hop, more = line[at+1:], at >= 0
			line = line[:max(at, 0)]
			if len(hop) <= maxHop && strings.TrimSpace(hop) == "" {
				continue
			}
			address, ok := parseHop(hop)
			if !ok { // the entry can't be read: the proxy that added it counts as the caller
				return connection.String()
			}
			if !s.trusts(address) {
				return address.String()
			}
		}
	}
	return connection.String()
}

// trusts reports whether an address belongs to a trusted proxy.
func (s *Server) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(s.trusted, func(p netip.Prefix) bool { return p.Contains(address) })
}

// parseHop reads an address with or without a port. An IPv4 address in IPv6 form becomes
// IPv4, and a zone is dropped.
func parseHop(text string) (netip.Addr, bool) {
	if len(text) > maxHop {
		return netip.Addr{}, false
	}
	text = strings.TrimSpace(text)
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		with, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		address = with.Addr()
	}
	return address.Unmap().WithZone(""), true
}

// unmappedAll returns networks, with IPv4 networks in IPv6 form converted to IPv4.
func unmappedAll(list []netip.Prefix) []netip.Prefix {
	plain := make([]netip.Prefix, len(list))
	for i, p := range list {
		plain[i] = p.Masked()
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			plain[i] = netip.PrefixFrom(a.Unmap(), p.Bits()-96).Masked()
		}
	}
	return plain
}
