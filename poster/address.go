package poster

import "net/netip"

// nat64 has the IPv6 forms of IPv4 addresses behind a translator (RFC 6052). IANA marks
// it as globally reachable, but a translator may reach private IPv4 addresses.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// A block is a row of a registry. If several blocks contain an address, the longest
// prefix decides.
type block struct {
	prefix    netip.Prefix
	reachable bool
}

const reachable = true

func of(prefix string, reachable bool) block {
	return block{netip.MustParsePrefix(prefix), reachable}
}

// blocks has IANA's special-purpose address registries of IPv4 and IPv6 (RFC 6890), with
// their column "Globally Reachable"; N/A counts as no. Rows from elsewhere are marked.
var blocks = []block{
	of("0.0.0.0/0", reachable),         // not in the registry: all other IPv4 addresses
	of("0.0.0.0/8", !reachable),        // "this network", RFC 791
	of("10.0.0.0/8", !reachable),       // private use, RFC 1918
	of("100.64.0.0/10", !reachable),    // shared address space, RFC 6598
	of("127.0.0.0/8", !reachable),      // loopback, RFC 1122
	of("168.63.129.16/32", !reachable), // not in the registry: Azure's platform service
	of("169.254.0.0/16", !reachable),   // link local, RFC 3927; metadata of clouds
	of("172.16.0.0/12", !reachable),    // private use, RFC 1918
	of("192.0.0.0/24", !reachable),     // IETF protocol assignments, RFC 6890; 192.0.0.0/29 (RFC 7335), .8 (RFC 7600), .170 and .171 (RFC 8880) too
	of("192.0.0.9/32", reachable),      // Port Control Protocol anycast, RFC 7723
	of("192.0.0.10/32", reachable),     // TURN anycast, RFC 8155
	of("192.0.2.0/24", !reachable),     // documentation, RFC 5737
	of("192.31.196.0/24", reachable),   // AS112-v4, RFC 7535
	of("192.52.193.0/24", reachable),   // AMT, RFC 7450
	of("192.88.99.0/24", !reachable),   // deprecated 6to4 relay anycast (N/A), RFC 7526; 192.88.99.2 (RFC 6751) too
	of("192.168.0.0/16", !reachable),   // private use, RFC 1918
	of("192.175.48.0/24", reachable),   // direct delegation AS112, RFC 7534
	of("198.18.0.0/15", !reachable),    // benchmarking, RFC 2544
	of("198.51.100.0/24", !reachable),  // documentation, RFC 5737
	of("203.0.113.0/24", !reachable),   // documentation, RFC 5737
	of("224.0.0.0/4", !reachable),      // not in the registry: multicast, RFC 5771
	of("240.0.0.0/4", !reachable),      // reserved, RFC 1112; limited broadcast, RFC 8190

	of("::/0", !reachable),             // not in the registry: not allocated, IPv6 multicast (ff00::/8, RFC 4291), and these rows of it: ::/128, ::1/128, ::ffff:0:0/96 (RFC 4291), 64:ff9b:1::/48 (RFC 8215), 100::/64 (RFC 6666), 100:0:0:1::/64 (RFC 9780), 5f00::/16 (RFC 9602), fc00::/7 (RFC 4193), fe80::/10 (RFC 4291)
	of("2000::/3", reachable),          // not in the registry: global unicast, RFC 4291
	of("2001::/23", !reachable),        // IETF protocol assignments, RFC 2928; Teredo (2001::/32, N/A, RFC 4380), benchmarking (2001:2::/48, RFC 5180) and ORCHID (2001:10::/28, N/A, RFC 4843) too
	of("2001:1::1/128", reachable),     // Port Control Protocol anycast, RFC 7723
	of("2001:1::2/128", reachable),     // TURN anycast, RFC 8155
	of("2001:1::3/128", reachable),     // DNS-SD Service Registration Protocol anycast, RFC 9665
	of("2001:3::/32", reachable),       // AMT, RFC 7450
	of("2001:4:112::/48", reachable),   // AS112-v6, RFC 7535
	of("2001:20::/28", reachable),      // ORCHIDv2, RFC 7343
	of("2001:30::/28", reachable),      // drone remote ID, RFC 9374
	of("2001:db8::/32", !reachable),    // documentation, RFC 3849
	of("2002::/16", !reachable),        // 6to4 (N/A), RFC 3056: the address may hold a private IPv4 address
	of("2620:4f:8000::/48", reachable), // direct delegation AS112, RFC 7534
	of("3fff::/20", !reachable),        // documentation, RFC 9637
}

// Refused tells whether attempts to an address are forbidden. IPv4-mapped and NAT64
// addresses are judged by the IPv4 address in them.
func Refused(addr netip.Addr) bool {
	addr = inside(addr)
	var longest block
	for _, b := range blocks {
		if b.prefix.Contains(addr) && (!longest.prefix.IsValid() || b.prefix.Bits() > longest.prefix.Bits()) {
			longest = b
		}
	}
	return !longest.reachable
}

// inside returns the address to judge: without its zone, and as IPv4 if it is an IPv6
// form of an IPv4 address.
func inside(addr netip.Addr) netip.Addr {
	addr = addr.WithZone("").Unmap()
	if nat64.Contains(addr) {
		bytes := addr.As16()
		addr = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return addr
}
