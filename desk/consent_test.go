package desk_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/desk"
)

var (
	stopWords  = []string{"STOP", "UNSUBSCRIBE", "OPT OUT", "IPTAL", "DUR", "RET", "BAJA", "PARAR", "SAIR", "STOPP", "ABMELDEN", "ARRET"}
	startWords = []string{"START", "SUBSCRIBE", "DEVAM", "ONAY", "ALTA", "VOLTAR", "INICIAR", "ANMELDEN", "REPRENDRE"}
)

func TestOptWord_words(t *testing.T) {
	t.Parallel()
	for change, words := range map[desk.OptChange][]string{desk.OptOut: stopWords, desk.OptInAgain: startWords} {
		for _, word := range words {
			for _, sent := range []string{word, strings.ToLower(word), word[:1] + strings.ToLower(word[1:])} {
				if got := desk.OptWord(sent); got != change {
					t.Errorf("%q asks for %d, want %d", sent, got, change)
				}
			}
			for _, sent := range []string{word + word, word + " " + word, "a" + word, word + "a", word + "1", word[1:]} {
				if got := desk.OptWord(sent); got != desk.OptNone {
					t.Errorf("%q asks for %d", sent, got)
				}
			}
		}
	}
}

func TestOptWord(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]desk.OptChange{
		// Letter case, Turkish too, and accents.
		"sToP":            desk.OptOut,
		"İPTAL":           desk.OptOut,
		"ıptal":           desk.OptOut,
		"iptal":           desk.OptOut,
		"I\u0307PTAL":     desk.OptOut,
		"i\u0307ptal":     desk.OptOut,
		"sair":            desk.OptOut,
		"SAİR":            desk.OptOut,
		"saır":            desk.OptOut,
		"ARRÊT":           desk.OptOut,
		"arrêt":           desk.OptOut,
		"arre\u0302t":     desk.OptOut,
		"ſtop":            desk.OptOut,
		"Inıcıar":         desk.OptInAgain,
		"re\u0301prendŕ":  desk.OptNone,
		"répréndré":       desk.OptInAgain,
		"reprendre\u0301": desk.OptInAgain,

		// Characters around the word.
		" \t\r\n\u00a0\u2003STOP\u3000\u2028": desk.OptOut,
		"STOP.":                               desk.OptOut,
		"¡STOP!!!":                            desk.OptOut,
		"«Stop»":                              desk.OptOut,
		"“STOP”":                              desk.OptOut,
		"- stop -":                            desk.OptOut,
		"*STOP*":                              desk.OptOut,
		"$STOP+":                              desk.OptOut,
		"🛑 STOP ❤️👍🏽":                         desk.OptOut,
		"\ufeffSTOP\u200b":                    desk.OptOut,
		"\u200fSTOP\u200e":                    desk.OptOut,
		"STOP\x00":                            desk.OptOut,
		"\xffSTOP\xff":                        desk.OptOut,
		"(start)":                             desk.OptInAgain,
		"STOP 1":                              desk.OptNone,
		"1. STOP":                             desk.OptNone,
		"STOP ²":                              desk.OptNone,

		// Characters inside the word.
		"opt-out":                               desk.OptOut,
		"OPT  OUT":                              desk.OptOut,
		"Opt – out":                             desk.OptOut,
		"opt—out":                               desk.OptOut,
		"opt\u2010out":                          desk.OptOut,
		"opt\u2011out":                          desk.OptOut,
		"opt\u2212out":                          desk.OptOut,
		"opt--out":                              desk.OptOut,
		"opt \t\n\u00a0\u2009\u3000out":         desk.OptOut,
		"opt" + strings.Repeat(" ", 90) + "out": desk.OptOut,
		"Öpt óut":                               desk.OptOut,
		"optout":                                desk.OptNone,
		"opt_out":                               desk.OptNone,
		"opt.out":                               desk.OptNone,
		"opt, out":                              desk.OptNone,
		"opt~out":                               desk.OptNone,
		"o-p-t out":                             desk.OptNone,
		"stopp ed":                              desk.OptNone,
		"st op":                                 desk.OptNone,
		"st-op":                                 desk.OptNone,
		"s.t.o.p":                               desk.OptNone,
		"un subscribe":                          desk.OptNone,

		// Other messages.
		"":                             desk.OptNone,
		" ":                            desk.OptNone,
		"-":                            desk.OptNone,
		"…":                            desk.OptNone,
		"👋":                            desk.OptNone,
		"\u0301":                       desk.OptNone,
		"STOP it":                      desk.OptNone,
		"please stop":                  desk.OptNone,
		"stop stop":                    desk.OptNone,
		"STOP!!! STOP":                 desk.OptNone,
		"stop start":                   desk.OptNone,
		"stop\nGet Outlook for iOS":    desk.OptNone,
		"stopped":                      desk.OptNone,
		"unsubscribed":                 desk.OptNone,
		"unsubscribe me":               desk.OptNone,
		"out opt":                      desk.OptNone,
		"opt in":                       desk.OptNone,
		"opt":                          desk.OptNone,
		"стоп":                         desk.OptNone,
		"ѕtop":                         desk.OptNone, // the first letter is Cyrillic
		"توقف":                         desk.OptNone,
		"0":                            desk.OptNone,
		"Ⅳ":                            desk.OptNone,
		strings.Repeat("stop", 10_000): desk.OptNone,
	} {
		if got := desk.OptWord(sent); got != want {
			t.Errorf("%.60q asks for %d, want %d", sent, got, want)
		}
	}
}

// Any person can send a long text to a channel, so it must not cost much.
func TestOptWord_allocates_nothing_for_long_texts(t *testing.T) {
	text := strings.Repeat("stop", 100_000)
	if n := testing.AllocsPerRun(10, func() { desk.OptWord(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOptWord_spelling_changes_nothing(t *testing.T) {
	t.Parallel()
	signs := rapid.StringOf(rapid.SampledFrom([]rune(" \t\n\u00a0.,;:!?¡¿…'\"«»“”()[]*_~-–—/\\+=<>$€🛑👍\u200b\ufe0f")))
	gap := rapid.StringMatching(`[ \t\n\x{a0}\x{2003}\-\x{2010}-\x{2015}\x{2212}]{1,9}`)
	words := append(append([]string{"STOPPED", "PLEASE STOP", "OPT", "ASK ME"}, stopWords...), startWords...)
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom(words).Draw(t, "word")
		var parts []string
		for part := range strings.FieldsSeq(word) {
			parts = append(parts, respell(t, part, []string{""}))
		}
		sent := signs.Draw(t, "before") + strings.Join(parts, gap.Draw(t, "gap")) + signs.Draw(t, "after")
		if got, want := desk.OptWord(sent), desk.OptWord(word); got != want {
			t.Fatalf("%q asks for %d, but %q for %d", word, want, sent, got)
		}
	})
}

func FuzzOptWord(f *testing.F) {
	for _, s := range []string{"STOP", " ıptal!", "Opt – out", "arre\u0302t", "START 👍🏽", "stop it", "\xff", "ﬆop"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := desk.OptWord(s)
		if got > desk.OptInAgain {
			t.Fatalf("%q asks for %d", s, got)
		}
		if around := "¡ " + s + " !\n"; desk.OptWord(around) != got {
			t.Fatalf("%q asks for %d, but %q for %d", s, got, around, desk.OptWord(around))
		}
		if twice := s + " " + s; desk.OptWord(twice) != desk.OptNone {
			t.Fatalf("%q asks for %d", twice, desk.OptWord(twice))
		}
	})
}
