package desk_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	nines, zeros := strings.Repeat("9", 38), strings.Repeat("0", 37)
	for sent, want := range map[string]string{ // "" is refused
		"0": "0", "-0": "0", "0.0": "0", "-0.00": "0", "0e9": "0", "0e-9": "0", "-0E+400": "0", "0e99999999999999999999": "0",
		"1": "1", "-1": "-1", "10": "10", "42.50": "42.5", "42.0": "42", "0.5": "0.5", "-0.5": "-0.5", "100.001": "100.001",
		" 7 ": "7", "\n7\t": "7",
		"1e3": "1000", "1E3": "1000", "1e+3": "1000", "1e0": "1", "1e-0": "1", "1.5e-3": "0.0015", "1.5e3": "1500", "-1.25e1": "-12.5",
		"12300e-2": "123", "12345e-2": "123.45", "0.001e3": "1", "0.0012e2": "0.12", "1e0000000003": "1000",
		"9007199254740993": "9007199254740993", "0.1": "0.1", "3.14159265358979323846": "3.14159265358979323846",
		nines: nines, "-" + nines: "-" + nines, "0." + nines: "0." + nines, nines + "." + nines: nines + "." + nines,
		nines + "9": "", "0." + nines + "9": "", nines + ".0": nines, "0." + nines + "0": "0." + nines,
		"1e37": "1" + zeros, "1e38": "", "1e-38": "0." + zeros + "1", "1e-39": "", "10e-39": "0." + zeros + "1",
		"1e400": "", "1e-400": "", "-1e400": "", "1e999999999999999999999999": "", "1e-999999999999999999999999": "",
		"0." + strings.Repeat("0", 1000) + "1e1001": "1", "1" + strings.Repeat("0", 1000) + "e-1000": "1",
		"": "", " ": "", "-": "", "+5": "", "--1": "", "01": "", "-01": "", "00": "", ".5": "", "1.": "", "1.e1": "", "-.5": "",
		"1e": "", "1e+": "", "1e1.5": "", "e1": "", "1e--1": "", "1e+-1": "", "0x10": "", "1_000": "", "1,5": "", "1 000": "",
		"NaN": "", "Infinity": "", "-Infinity": "", "null": "", "1a": "", "１": "", "1\x00": "", "1\xff": "", "- 1": "", "1e 1": "",
	} {
		got, ok := desk.ParseDecimal(sent)
		if got != want || ok != (want != "") {
			t.Errorf("%.60q: got %q, %v, want %q", sent, got, ok, want)
		}
	}
}

// checkDecimal checks ParseDecimal with any text. An accepted text is a JSON number, and the
// result has the same value and is its own canonical form. A refused text is not a JSON
// number, or has too many digits.
func checkDecimal(t tester, sent string) {
	t.Helper()
	got, ok := desk.ParseDecimal(sent)
	trimmed := strings.TrimSpace(sent)
	isNumber := json.Valid([]byte(trimmed)) && strings.Trim(trimmed, "+-.eE0123456789") == ""
	if !ok {
		if isNumber && !strings.ContainsAny(sent, "eE") && len(sent) <= desk.MaxDecimalDigits {
			t.Fatalf("%q is refused", sent)
		}
		return
	}
	if !isNumber || !json.Valid([]byte(got)) {
		t.Fatalf("%q is %q; is a number: %v", sent, got, isNumber)
	}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(got, "-"), ".")
	if strings.ContainsAny(got, "eE+") || strings.HasSuffix(fraction, "0") || got == "-0" ||
		len(whole) > desk.MaxDecimalDigits || len(fraction) > desk.MaxDecimalDigits {
		t.Fatalf("%q is %q, which is not canonical", sent, got)
	}
	if again, ok := desk.ParseDecimal(got); !ok || again != got {
		t.Fatalf("%q is %q, which is %q, %v", sent, got, again, ok)
	}
	// big.Rat writes all zeros of a number with an exponent, so great exponents are not
	// tried.
	if _, exponent, _ := strings.Cut(strings.ToLower(trimmed), "e"); len(exponent) > 4 {
		return
	}
	a, okA := new(big.Rat).SetString(trimmed)
	b, okB := new(big.Rat).SetString(got)
	if !okA || !okB || a.Cmp(b) != 0 {
		t.Fatalf("%q is %q, which is another value", sent, got)
	}
}

// A tester is the part of testing.T and rapid.T that checks use.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestParseDecimal_keeps_the_value(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkDecimal(t, rapid.StringMatching(` ?-?(0|[1-9][0-9]{0,39})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "sent"))
	})
}

func BenchmarkParseDecimal(b *testing.B) {
	for _, sent := range []string{"42.5", "1.50e3"} {
		b.Run(sent, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := desk.ParseDecimal(sent); !ok {
					b.Fatal(sent)
				}
			}
		})
	}
}
