package desk_test

import (
	"bytes"
	"crypto/sha256"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"parley/desk"
)

// Keys and their parts, made once by another program (Python: zlib.crc32, hashlib)
// from the bytes 0, 1, … 41; from 0, 7, 14, … modulo 256, of which two are skipped;
// and one whose sum needs zeros on the left.
const (
	golden       = "prl_live_0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef16gwr6"
	goldenSeven  = "prl_live_07ELSZgnu1_8FMTahov29GNUbipw3AHOVcjqx3AHOVc1Zzl5e"
	goldenPadded = "prl_live_9cE0000000_000000000000000000000000000000000004ti"
)

// digits62 has the digits of contract §7.
const digits62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// checksum implements contract §7 in another way: CRC-32 (IEEE) bit by bit, and base62 by
// math/big, whose digits have the lower case first.
func checksum(s string) string {
	sum := ^uint32(0)
	for i := range len(s) {
		sum ^= uint32(s[i])
		for range 8 {
			sum = sum>>1 ^ 0xEDB88320&-(sum&1)
		}
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, big.NewInt(int64(^sum)).Text(62))
	return strings.Repeat("0", 6-len(text)) + text
}

func sequence(n, factor int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * factor)
	}
	return b
}

func TestNewKey_golden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		random []byte
		want   string
	}{
		{sequence(42, 1), golden},
		{sequence(64, 1), golden}, // the other bytes are not used
		{sequence(64, 7), goldenSeven},
		{append([]byte{71, 162, 14}, make([]byte, 39)...), goldenPadded},
	} {
		text, credential, ok := desk.NewKey(c.random)
		if text != c.want || !ok {
			t.Errorf("got  %s, %v\nwant %s", text, ok, c.want)
		}
		parsed, ok := desk.ParseKey(c.want)
		if !ok || parsed != credential || parsed.PublicID != c.want[9:19] || parsed.Hash() != sha256.Sum256([]byte(c.want[20:52])) {
			t.Errorf("%s is %+v, %v", c.want, parsed, ok)
		}
	}
}

func TestNewKey_wants_enough_even_bytes(t *testing.T) {
	t.Parallel()
	biased := []byte{248, 249, 250, 251, 252, 253, 254, 255}
	for _, c := range []struct {
		name   string
		random []byte
		ok     bool
	}{
		{"none", nil, false},
		{"10", sequence(10, 1), false},
		{"11", sequence(11, 1), false},
		{"41", sequence(41, 1), false},
		{"42", sequence(42, 1), true},
		{"42 after biased ones", append(slices.Repeat(biased, 9), sequence(42, 1)...), true},
		{"42 among biased ones", slices.Concat(sequence(10, 1), biased, sequence(42, 1)[10:], biased), true},
		{"41 and biased ones", append(sequence(41, 1), slices.Repeat(biased, 9)...), false},
		{"biased ones only", slices.Repeat(biased, 99), false},
	} {
		text, credential, ok := desk.NewKey(c.random)
		switch {
		case ok != c.ok:
			t.Errorf("%s: %q, %v", c.name, text, ok)
		case ok && text != golden:
			t.Errorf("%s: %s", c.name, text)
		case !ok && (text != "" || credential != desk.Credential{}):
			t.Errorf("%s: %q, %+v beside false", c.name, text, credential)
		}
	}
}

// TestNewKey_favours_no_character: each character is made from four byte values, and the
// remaining eight values are skipped.
func TestNewKey_favours_no_character(t *testing.T) {
	t.Parallel()
	count := map[byte]int{}
	for r := range 256 {
		if text, _, ok := desk.NewKey(bytes.Repeat([]byte{byte(r)}, 42)); ok {
			count[text[9]]++
		}
	}
	for i := range len(digits62) {
		if count[digits62[i]] != 4 {
			t.Errorf("%c comes of %d bytes", digits62[i], count[digits62[i]])
		}
	}
	if len(count) != 62 {
		t.Errorf("%d characters", len(count))
	}
}

func TestNewKey_has_the_format_of_the_contract(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		random := rapid.SliceOfN(rapid.Byte(), 0, 90).Draw(t, "random")
		even := 0
		for _, r := range random {
			if r < 248 {
				even++
			}
		}
		text, credential, ok := desk.NewKey(random)
		if ok != (even >= 42) {
			t.Fatalf("%d even bytes: %v", even, ok)
		}
		if !ok {
			return
		}
		body := text[:52]
		if len(text) != 58 || !strings.HasPrefix(text, "prl_live_") || text[19] != '_' || strings.Trim(text[9:19]+text[20:], digits62) != "" || text[52:] != checksum(body) {
			t.Fatal(text)
		}
		if parsed, ok := desk.ParseKey(text); !ok || parsed != credential {
			t.Fatalf("%s is read as %+v, %v", text, parsed, ok)
		}
	})
}

func TestParseKey_refuses_any_other_character(t *testing.T) {
	t.Parallel()
	for _, key := range []string{golden, goldenSeven, goldenPadded} {
		for i := range len(key) {
			for c := range 256 {
				other := key[:i] + string([]byte{byte(c)}) + key[i+1:]
				if _, ok := desk.ParseKey(other); ok != (other == key) {
					t.Errorf("%q: %v", other, ok)
				}
			}
		}
	}
}

func TestParseKey_refuses(t *testing.T) {
	t.Parallel()
	sealed := func(body string) string { return body + checksum(body) }
	if sealed(golden[:52]) != golden || sealed(goldenPadded[:52]) != goldenPadded {
		t.Fatal("the test's own checksum is wrong")
	}
	for _, s := range []string{
		"", "prl_live_", "Bearer " + golden, golden + " ", " " + golden, golden + "\n", golden[:57], golden + "0", golden[1:], strings.ToUpper(golden), strings.ToLower(golden),
		sealed("prl_test_0123456789_" + golden[20:52]),
		sealed("PRL_LIVE_0123456789_" + golden[20:52]),
		sealed("prl_live_0123456789A" + golden[20:52]), // no underscore
		sealed("prl_live_012345678_A" + golden[20:52]), // at another place
		sealed("prl_live_0123456789_" + golden[20:51] + "_"),
		sealed("prl_live_0123_56789_" + golden[20:52]), // twice
		sealed("prl_live_0123456789_" + golden[20:51] + "-"),
		sealed("prl_live_0123-56789_" + golden[20:52]),
		sealed("prl_live_012345678é_" + golden[20:51]),
		sealed("prl_live_0123456789_" + golden[20:51] + "\x00"),
		golden[:52] + strings.ToUpper(golden[52:]),
	} {
		if c, ok := desk.ParseKey(s); ok || c != (desk.Credential{}) {
			t.Errorf("%q: %+v, %v", s, c, ok)
		}
	}
}

func TestCredential_Proves(t *testing.T) {
	t.Parallel()
	credential, _ := desk.ParseKey(golden)
	other, _ := desk.ParseKey(goldenSeven)
	stored := &desk.APIKey{PublicID: credential.PublicID, SecretHash: credential.Hash()}
	switch {
	case !credential.Proves(stored):
		t.Error("the key does not prove itself")
	case other.Proves(stored):
		t.Error("another secret proves the key")
	case credential.Proves(&desk.APIKey{PublicID: credential.PublicID}):
		t.Error("a key without a hash is proven")
	case desk.Credential{}.Proves(stored):
		t.Error("no secret proves the key")
	}
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{golden, goldenSeven, goldenPadded, "", "prl_live_", golden[:57], golden + "0", "prl_live_0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZabcde_000000"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, seal bool) {
		if seal && len(s) >= 52 { // a fuzzer would not find the sum by itself
			s = s[:52] + checksum(s[:52])
		}
		c, ok := desk.ParseKey(s)
		well := len(s) == 58 && strings.HasPrefix(s, "prl_live_") && s[19] == '_' && strings.Trim(s[9:19]+s[20:], digits62) == "" && s[52:] == checksum(s[:52])
		if ok != well {
			t.Fatalf("%q: %v, want %v", s, ok, well)
		}
		if !ok {
			if c != (desk.Credential{}) {
				t.Fatalf("%q: %+v beside false", s, c)
			}
			return
		}
		if c.PublicID != s[9:19] || c.Hash() != sha256.Sum256([]byte(s[20:52])) {
			t.Fatalf("%q is %+v", s, c)
		}
	})
}
