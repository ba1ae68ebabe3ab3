package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
	"parley/store"
)

// sending sends pickup_ready to a number as a member, in the same way as the send page.
func (w *world) sending(m desk.Member, key, number string) error {
	w.t.Helper()
	ctx := context.Background()
	p, err := w.app.Access.Member(ctx, w.ws, m.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.app.Send(ctx, p, &desk.SendRequest{
		Key: key, Phone: desk.Identity{Kind: desk.KindPhone, Value: number}, Template: "pickup_ready", Language: "en", OptInConfirmed: true,
		Variables: desk.TemplateValues{List: []string{"A-17", "Ann", "Nora"}},
	}, w.newID())
	return err
}

// reports simulates a report of the provider: the message of an attempt gets a status.
func (w *world) reports(id desk.ID, d desk.DeliveryStatus, f *desk.Failure) {
	w.t.Helper()
	ctx := context.Background()
	at, err := w.store.Attempt(ctx, w.ws, id)
	if err != nil || at == nil {
		w.t.Fatal(at, err)
	}
	if err := w.store.InTx(ctx, w.ws, func(tx store.Tx) error {
		m, err := tx.MessageBy(at.Plan.Channel, at.ExternalID)
		if err != nil {
			return err
		}
		m.Reach(d, f)
		return tx.PutMessage(m)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// TestSends_outcome: an accepted send shows the delivery of its message.
func TestSends_outcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mei := w.as(w.mei)
	w.template(pickup)
	if err := w.sending(w.mei, "lost", "34612340003"); !desk.IsType(err, desk.SendOutcomeUnknown) {
		t.Fatal(err)
	}
	for _, key := range []string{"failed", "read"} {
		if err := w.sending(w.mei, key, "34612345678"); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := w.app.Attempts(context.Background(), w.operator(), app.AttemptFilter{}, "", 10)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d attempts, %v", len(list), err)
	}
	read, failed, lost := list[0], list[1], list[2]
	const sent, notDelivered, fix = `<span class="pill good">Sent</span>`, `<span class="pill bad">Not delivered</span>`, "Check the number."
	outcome := func(at *desk.Attempt, want string) got {
		t.Helper()
		mei.get("/sends").want(200, want)
		return mei.get("/sends/"+at.ID.String()).want(200, want)
	}
	outcome(failed, sent).lacks(fix)
	w.reports(failed.ID, desk.Failed, &desk.Failure{Code: 131026, Title: "message undeliverable", Fix: "check the number"})
	outcome(failed, notDelivered).want(200, "Message undeliverable.", fix, "131026", "Open the conversation").lacks(sent)
	mei.get("/sends").want(200, "Message undeliverable.", sent)
	outcome(read, sent).lacks("Not delivered", "undeliverable")
	for _, v := range []struct {
		d    desk.DeliveryStatus
		word string
	}{{desk.Delivered, "Delivered"}, {desk.Read, "Read"}} {
		w.reports(read.ID, v.d, nil)
		outcome(read, `<span class="pill good">`+v.word+`</span>`).lacks(sent)
	}
	outcome(lost, "In doubt")
	mei.get("/sends").lacks(sent)
	// The list of failed sends has only failed sends.
	rows := func(g got, want ...*desk.Attempt) {
		t.Helper()
		for _, at := range []*desk.Attempt{read, failed, lost} {
			if has := strings.Contains(g.body, `id="s-`+at.ID.String()+`"`); has != slices.Contains(want, at) {
				t.Errorf("the list has %s: %t", at.Key, has)
			}
		}
	}
	rows(mei.get("/sends?failed=yes").want(200, "Message undeliverable.", `href="/sends?failed=yes" aria-current="page"`), failed)
	rows(mei.get("/sends?doubt=yes&failed=yes").want(200), lost)
	mei.get("/sends?failed=yes&after=nonsense").want(200, "Message undeliverable.")
	if _, err := w.app.Release(context.Background(), w.operator(), lost.ID, true); err != nil {
		t.Fatal(err)
	}
	outcome(lost, sent) // released as sent, although the provider's id of the message is not known

	// A failure was reported, but the message was delivered later.
	w.reports(failed.ID, desk.Delivered, nil)
	outcome(failed, `<span class="pill good">Delivered</span>`).lacks(fix, "undeliverable")
	mei.get("/sends").lacks("undeliverable")
	rows(mei.get("/sends?failed=yes").want(200, "Nothing failed"))
}

func TestSends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	mei.get("/sends").want(200, "Nothing was sent yet").golden("sends/none")
	mei.get("/sends?doubt=yes").want(200, "Nothing is in doubt")
	w.template(pickup)
	for _, c := range []struct {
		number string
		want   desk.ErrorType
	}{{"34612345678", ""}, {"34612340001", desk.ProviderRejected}, {"34612340003", desk.SendOutcomeUnknown}} {
		if err := w.sending(w.mei, "key "+c.number, c.number); c.want == "" && err != nil || c.want != "" && !desk.IsType(err, c.want) {
			t.Fatalf("%s: %v", c.number, err)
		}
	}
	list, _, err := w.app.Attempts(context.Background(), w.operator(), app.AttemptFilter{}, "", 10)
	if err != nil || len(list) != 3 {
		t.Fatalf("%d attempts, %v", len(list), err)
	}
	paths := map[desk.Phase]string{}
	for _, at := range list {
		paths[at.Phase] = "/sends/" + at.ID.String()
		if at.Phase == desk.Done {
			mei.get("/inbox/"+at.Plan.Conversation.String()).want(200, "Opt-in confirmed by <bdi>Mei Tanaka</bdi>")
		}
	}
	mei.get("/sends").want(200, "34 612 34 56 78", "pickup_ready", "In doubt", "Not sent", "Mei Tanaka")
	mei.get("/sends?doubt=yes").want(200, paths[desk.InDoubt]).lacks(paths[desk.Done], paths[desk.Refused])
	mei.get(paths[desk.Done]).want(200, "Open the conversation", "key 34612345678", "Opt-in confirmed by", "<bdi>Mei Tanaka</bdi>, <time").lacks("Nobody knows")
	mei.get(paths[desk.Refused]).want(200, "Somebody new", "Code of the provider").lacks("Open the conversation", "Nobody knows")

	doubt := paths[desk.InDoubt]
	mei.get(doubt).want(200, "34 612 34 00 03", "Hi Ann, your order is ready", "An admin can settle it", "Nora Lindqvist").lacks("It arrived</button>")
	mei.post(doubt+"/release", "outcome", "sent").want(403)
	nora.get(doubt).want(200, "It arrived</button>").golden("sends/doubt")
	nora.post(doubt+"/release", "outcome", "perhaps").want(422, "Error: ")
	nora.post(doubt+"/release", "outcome", "sent").sends(doubt + "?done=settled")
	nora.get(doubt+"?done=settled").want(200, "Settled.", "Open the conversation").lacks("It arrived")
	nora.post(doubt+"/release", "outcome", "not-sent").want(409, "settled already")
	nora.get("/sends/"+w.newID().String()).want(404, "Not here")

	for i := range pageRows {
		if err := w.sending(w.nora, fmt.Sprint("more ", i), fmt.Sprint(34612340100+i)); err != nil {
			t.Fatal(err)
		}
	}
	page := mei.get("/sends").want(200, "Next 50").lacks(doubt).body
	_, next, _ := strings.Cut(page, `href="/sends?after=`)
	next, _, _ = strings.Cut(next, `"`)
	mei.get("/sends?after="+next).want(200, doubt, "Newest").lacks("Next 50")
	mei.get("/sends?doubt=yes&after="+next).want(200, "Nothing is in doubt")
}

// TestSends_release_many: a member chooses several attempts in doubt and settles them
// together. First, a page names and counts them, and asks for confirmation. If another
// member has settled some of them meanwhile, these stay as they are.
func TestSends_release_many(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora, mei := w.as(w.nora), w.as(w.mei)
	w.template(pickup)
	for n := range 4 {
		if err := w.sending(w.mei, fmt.Sprint("lost ", n), fmt.Sprintf("346123%d0003", n)); !desk.IsType(err, desk.SendOutcomeUnknown) {
			t.Fatal(err)
		}
	}
	list, _, err := w.app.Attempts(context.Background(), w.operator(), app.AttemptFilter{Phase: desk.InDoubt}, "", 10)
	if err != nil || len(list) != 4 {
		t.Fatalf("%d in doubt, %v", len(list), err)
	}
	ids := make([]string, len(list))
	for i, at := range list {
		ids[i] = at.ID.String()
	}
	nora.get("/sends?doubt=yes").want(200, `name="id" value="`+ids[0]+`"`, "The chosen ones arrived")
	nora.get("/sends").want(200).lacks(`name="id"`)
	mei.get("/sends?doubt=yes").want(200).lacks(`name="id"`)
	mei.get("/sends/release?outcome=sent&id=" + ids[0]).want(403)
	mei.post("/sends/release", "outcome", "sent", "id", ids[0]).want(403)
	nora.get("/sends/release?outcome=sent").sends("/sends?doubt=yes")
	ask := "/sends/release?outcome=not-sent&id=" + ids[0] + "&id=" + ids[1] + "&id=" + ids[1] + "&id=nonsense&id=" + w.newID().String()
	nora.get(ask).want(200, "Settle 2 sends as not sent?", "34 612 33 00 03", "34 612 32 00 03", "They were not sent</button>").lacks(ids[2]).golden("sends/release")
	nora.post("/sends/release", "outcome", "perhaps", "id", ids[0]).want(422, "Error: ")
	nora.post("/sends/release", "outcome", "sent", "id", "nonsense").sends("/sends?doubt=yes")
	nora.post("/sends/release", "outcome", "not-sent", "id", ids[0], "id", ids[1]).sends("/sends?doubt=yes&done=settled")
	nora.post("/sends/release", "outcome", "not-sent", "id", ids[0]).sends("/sends?doubt=yes&done=settled")
	nora.get("/sends/release?outcome=sent&id="+ids[2]+"&id="+ids[0]).want(200, "Settle 1 send as sent?")
	nora.post("/sends/release", "outcome", "sent", "id", ids[0], "id", ids[2]).want(409, "1 send was settled; 1 send was settled otherwise meanwhile")
	for i, want := range []desk.Phase{desk.Released, desk.Released, desk.Done, desk.InDoubt} {
		if at, err := w.app.Attempt(context.Background(), w.operator(), list[i].ID); err != nil || at.Phase != want {
			t.Errorf("the attempt %d is %s, want %s, %v", i, at.Phase, want, err)
		}
	}
}
