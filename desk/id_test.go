package desk_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

const (
	someID = "0198c0de-1234-7abc-8def-0123456789ab"
	zeroID = "00000000-0000-0000-0000-000000000000"
)

var someBytes = desk.ID{0x01, 0x98, 0xc0, 0xde, 0x12, 0x34, 0x7a, 0xbc, 0x8d, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, s := range []string{someID, strings.ToUpper(someID), "0198C0de-1234-7aBc-8def-0123456789aB"} {
		if id, ok := desk.ParseID(s); !ok || id != someBytes || id.IsZero() {
			t.Errorf("%s: %x, %v", s, id, ok)
		}
	}
	if id, ok := desk.ParseID(zeroID); !ok || !id.IsZero() || id.String() != zeroID {
		t.Errorf("the zero id is %s, %v", id, ok)
	}
	if got := string(someBytes.Append([]byte("id="))); got != "id="+someID {
		t.Errorf("appended: %s", got)
	}
}

func TestParseID_refuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "1", someID[:35], someID + "0", " " + someID, someID + " ", " " + someID[:35], someID[1:] + "\n",
		"{" + someID + "}", "urn:uuid:" + someID, strings.ReplaceAll(someID, "-", ""),
		strings.ReplaceAll(someID, "-", "_"), strings.ReplaceAll(someID, "-", "–"),
		"0198c0de1-234-7abc-8def-0123456789ab", // the first dash is late
		"0198c0d-e1234-7abc-8def-0123456789ab", // and early
		"0198c0de-1234-7abc-8def0-123456789ab", // the last is late
		"0198c0de-1234-7abc-8de-f0123456789ab", // and early
		"0198c0de-1234-7abc--def-0123456789ab", // one too many
		"0198c0de-1234-7abc-8def-0123456789a-", // at the end
		"-198c0de-1234-7abc-8def-0123456789ab", // at the beginning
		"0198c0de-1234-7abc-8def-0123456789ag", // no hex
		"0x98c0de-1234-7abc-8def-0123456789ab", //
		"+198c0de-1234-7abc-8def-0123456789ab", //
		"0198c0de-1234-7abc-8def-01234567é9ab"[:36],
		"0198c0de-1234-7abc-8def-０１２３"[:36], // digits of full width
		"\x00198c0de-1234-7abc-8def-0123456789a",
		strings.Repeat("0", 36), strings.Repeat("-", 36),
	} {
		if id, ok := desk.ParseID(s); ok || !id.IsZero() {
			t.Errorf("%q: %s, %v", s, id, ok)
		}
	}
}

func TestID_reads_back_and_keeps_the_order(t *testing.T) {
	t.Parallel()
	any := rapid.Custom(func(t *rapid.T) desk.ID {
		return desk.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := any.Draw(t, "a"), any.Draw(t, "b")
		if again, ok := desk.ParseID(a.String()); again != a || !ok {
			t.Fatalf("%s is read as %s, %v", a, again, ok)
		}
		if strings.Compare(a.String(), b.String()) != bytes.Compare(a[:], b[:]) {
			t.Fatalf("%s and %s stand in another order than their bytes", a, b)
		}
	})
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\z`)

func FuzzParseID(f *testing.F) {
	for _, s := range []string{someID, strings.ToUpper(someID), zeroID, "{" + someID + "}", "urn:uuid:" + someID, strings.ReplaceAll(someID, "-", ""), "0198c0de1-234-7abc-8def-0123456789ab"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := desk.ParseID(s)
		if ok != uuidForm.MatchString(s) {
			t.Fatalf("%q: %v", s, ok)
		}
		if ok && id.String() != strings.ToLower(s) || !ok && !id.IsZero() {
			t.Fatalf("%q is %s", s, id)
		}
	})
}

func TestNext(t *testing.T) {
	t.Parallel()
	for id, want := range map[desk.ID]desk.ID{
		{15: 1}: {15: 2}, {14: 1, 15: 0xff}: {14: 2},
		desk.ID(bytes.Repeat([]byte{0xff}, 16)): {},
	} {
		if got := id.Next(); got != want {
			t.Errorf("after %s: %s, want %s", id, got, want)
		}
	}
}
