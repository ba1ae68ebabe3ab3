package console

import (
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// counted stores numbers of messages, as if parley had counted events.
func (w *world) counted(counts ...desk.DailyCount) {
	w.t.Helper()
	at, err := w.store.DailyPlace(w.t.Context(), w.ws)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.store.InTx(w.t.Context(), w.ws, func(tx store.Tx) error {
		return tx.CountDays(at, desk.EventPlace{Seq: at.Seq + 1, Tag: 1}, counts)
	}); err != nil {
		w.t.Fatal(err)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	nora.get("/overview").want(200, "First steps", "Nothing to show for these days").golden("overview/first")
	mei.get("/overview").want(200, "Nothing to show for these days").lacks("First steps")
	w.template(strings.Replace(pickup, `"category"`, `"quality_score":{"score":"YELLOW"},"category"`, 1))
	today, key := desk.DayOf(desk.Time(w.clock.Load())), w.channel.String()+"/pickup_ready/en"
	w.counted(
		desk.DailyCount{Day: today, Kind: desk.DailyReceived, N: 1200},
		desk.DailyCount{Day: today, Kind: desk.DailySent, Key: key, N: 40},
		desk.DailyCount{Day: today - 3, Kind: desk.DailySent, Key: key, N: 60},
		desk.DailyCount{Day: today - 3, Kind: desk.DailySent, Key: desk.ID{9}.String() + "/of_old/de", N: 5},
		desk.DailyCount{Day: today - 3, Kind: desk.DailyDelivered, Key: key, N: 80},
		desk.DailyCount{Day: today - 3, Kind: desk.DailyRead, Key: key, N: 50},
		desk.DailyCount{Day: today - 3, Kind: desk.DailyFailed, Key: key, N: 3},
		desk.DailyCount{Day: today - 3, Kind: desk.DailyReason, Key: "131026", Label: `Not delivered <"&>`, N: 2},
		desk.DailyCount{Day: today - 3, Kind: desk.DailyReason, Key: "131049", N: 1},
		desk.DailyCount{Day: today - 40, Kind: desk.DailySent, N: 1000},
	)
	mei.get("/overview").want(200, "1,200 received, 105 sent.", "105 sent, 80 delivered, 50 read, 3 failed.", "50 % of 100 · rated yellow", "of_old (de)", "Code 131049",
		"Not delivered &lt;&#34;&amp;&gt;", "As a table").lacks("1,105 sent", "Nothing to show").golden("overview/full")
	mei.get("/overview?days=7").want(200, "1,200 received, 105 sent.")
	mei.get("/overview?days=90").want(200, "1,200 received, 1,105 sent.")
	mei.get("/overview?days=5000").want(200, "1,200 received, 105 sent.")

	// The list of first steps is shown until all are done.
	w.contact("Lucía", "34612345678")
	name, permissions := "CRM", "all"
	if _, _, err := w.app.CreateKey(t.Context(), w.operator(), app.KeyEdit{Name: &name, Permissions: &permissions}); err != nil {
		t.Fatal(err)
	}
	nora.get("/overview").want(200, "First steps")
	if err := w.sending(w.nora, "key", "34612345678"); err != nil {
		t.Fatal(err)
	}
	nora.get("/overview").want(200).lacks("First steps")
}

// TestOverview_fillable: a template that needs a file can be sent.
func TestOverview_fillable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	const open = `<a class="btn small" href="/templates">Templates</a>`
	nora.get("/overview").want(200, open)
	w.template(`{"name":"poster","language":"en","status":"APPROVED","category":"UTILITY","components":[{"type":"HEADER","format":"IMAGE"},{"type":"BODY","text":"Look"}]}`)
	nora.get("/overview").want(200).lacks(open)
}

// TestOverview_team: the table of the team shows which members are available, how many
// conversations each of them has, and how long their longest wait is.
func TestOverview_team(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	mei.get("/overview").want(200, "The team now", "Unassigned", "Tomás Rivera", "nobody")
	c := w.writes("+34 612 34 56 70", "Sofia", "Hello")
	w.later(3*time.Hour + 5*time.Minute)
	w.writes("+34 612 34 56 71", "Bruno", "Hello")
	w.later(7 * time.Minute)
	if _, err := w.app.Assign(t.Context(), w.operator(), c.ID, w.tomas.ID.String(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.app.SetAvailable(t.Context(), w.operator(), w.nora.ID, false); err != nil {
		t.Fatal(err)
	}
	mei.header.Set("Parley-Part", "team")
	mei.get("/overview").want(200, "3 h</time>", "7 min</time>", `<span class="pill warn">Away</span>`, "/inbox?view="+w.tomas.ID.String()).lacks("Messages by day").golden("overview/team")
}

// TestChart_words: the text above a bar fits into the picture. The table has the whole
// text.
func TestChart_words(t *testing.T) {
	t.Parallel()
	c := barsOf("x", "X", "", 10, nil)
	c.bar(strings.Repeat("é", 200), "12 · 3 %", "", 20, strings.Repeat("é", 200))
	if b := c.Bars[0]; len([]rune(b.Label)) > barWords-len([]rune(b.Value)) || b.Width != chartWidth || len([]rune(c.Lines[0][0])) != 200 {
		t.Errorf("%+v", b)
	}
	for of, want := range map[int64]string{0: "–", 3: "33 %", 1: "100 %"} {
		if got := percent(1, of); got != want {
			t.Errorf("1 of %d: %s", of, got)
		}
	}
}
