package poster_test

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/poster"
)

// TestRefused checks the first and last address of each refused block, and their
// neighbours outside the block.
func TestRefused(t *testing.T) {
	t.Parallel()
	refused := strings.Fields(`
		0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.0.0.1 127.255.255.255
		168.63.129.16 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255
		192.0.0.0 192.0.0.8 192.0.0.11 192.0.0.170 192.0.0.171 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.0 192.88.99.2 192.88.99.255
		192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0 203.0.113.255
		224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.254 255.255.255.255
		:: ::1 ::2 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254
		64:ff9b:0:0:1::808:808 64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:808:808 100:: 100::ffff:ffff:ffff:ffff 100:0:0:1:: 1fff:: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
		2001:: 2001:0:ffff:ffff:ffff:ffff:ffff:ffff 2001:1:: 2001:1::4 2001:2:: 2001:2:0:ffff:ffff:ffff:ffff:ffff 2001:4:: 2001:4:113:: 2001:10:: 2001:1f:ffff::
		2001:40:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff 2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
		2002:: 2002:808:808:: 2002:7f00:1:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff
		4000:: 5f00:: 5f00:ffff:: fc00:: fd00:ec2::254 fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fe80:: fe80::1%eth0 febf:ffff:: fec0:: ff00:: ff02::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
		::1%lo ::ffff:127.0.0.1%lo`)
	open := strings.Fields(`
		1.0.0.0 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15 168.63.129.17
		169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.0.9 192.0.0.10 192.0.1.0 192.0.1.255 192.0.3.0 192.31.196.0 192.52.193.0
		192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 192.175.48.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0
		203.0.112.255 203.0.114.0 223.255.255.255
		::ffff:8.8.8.8 64:ff9b::8.8.8.8 2000:: 2001:1::1 2001:1::2 2001:1::3 2001:3:: 2001:3:ffff:: 2001:4:112:: 2001:20:: 2001:2f:ffff:: 2001:30:: 2001:3f:ffff::
		2001:200:: 2001:4860:4860::8888 2001:db7:ffff:: 2001:db9:: 2003:: 2606:4700:4700::1111 2620:4f:8000:: 3ffe:: 3fff:1000:: 3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`)
	for _, s := range refused {
		if !poster.Refused(netip.MustParseAddr(s)) {
			t.Errorf("%s is not refused", s)
		}
	}
	for _, s := range open {
		if poster.Refused(netip.MustParseAddr(s)) {
			t.Errorf("%s is refused", s)
		}
	}
	if !poster.Refused(netip.Addr{}) {
		t.Error("no address is not refused")
	}
}

// TestRefused_forms: addresses that Go marks as special are refused, in all forms of an
// IPv4 address.
func TestRefused_forms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := binary.BigEndian.AppendUint32(nil, rapid.Uint32().Draw(t, "address"))
		v4, _ := netip.AddrFromSlice(bytes)
		want := poster.Refused(v4)
		if special := v4.IsPrivate() || v4.IsLoopback() || v4.IsLinkLocalUnicast() || v4.IsMulticast() || v4.IsUnspecified(); special && !want {
			t.Errorf("%s is not refused", v4)
		}
		for _, prefix := range []string{"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff", "\x00\x64\xff\x9b\x00\x00\x00\x00\x00\x00\x00\x00"} {
			v6, _ := netip.AddrFromSlice(append([]byte(prefix), bytes...))
			if poster.Refused(v6) != want {
				t.Errorf("%s is judged another way than %s", v6, v4)
			}
		}
	})
}
