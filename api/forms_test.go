package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"parley/app"
	"parley/desk"
)

// A writtenAs is a member of a contact's JSON that names a person.
type writtenAs struct{ kind, value string }

// people returns forty persons of twelve countries and two writing systems, each in the
// five forms in which clients write them.
func people() (list [][]writtenAs) {
	phones := []struct {
		code, national, trunk string
		n                     int
	}{
		{"44", "77009%05d", "0", 3}, {"90", "53211%05d", "0", 3}, {"49", "15112%06d", "0", 3}, {"61", "4123%05d", "0", 2},
		{"33", "6123%05d", "0", 2}, {"91", "98765%05d", "0", 2}, {"7", "91234%05d", "8", 2}, {"1", "20255%05d", "1", 2}, {"39", "34812%05d", "", 2},
	}
	for _, p := range phones {
		for i := range p.n {
			n := fmt.Sprintf(p.national, 12300+i)
			long := "+" + p.code + n
			list = append(list, forms("phone", long, "00"+long[1:], "+"+p.code+" ("+p.trunk+")"+n, "+"+p.code+"-"+p.trunk+n[:3]+"."+n[3:], long[1:]))
		}
	}
	for i := range 3 {
		a, b := fmt.Sprintf("11 9876%d 4321", i), fmt.Sprintf("11 876%d 4321", i)
		list = append(list, forms("phone", "+55 "+a, "+55 "+b, "+55 (0) "+a, "0055 "+b, "+55 0"+strings.ReplaceAll(b, " ", "")))
		m := fmt.Sprintf("55 1234 567%d", i)
		list = append(list, forms("phone", "+52 "+m, "+52 1 "+m, "0052 "+m, "00521 "+m, "+52-"+m))
		r := fmt.Sprintf("1234 567%d", i)
		list = append(list, forms("phone", "+54 11 "+r, "+54 9 11 "+r, "+54 11 15 "+r, "+54 0 11 "+r, "0054 (9) 11 "+r))
	}
	for i := range 7 {
		list = append(list, forms("email", fmt.Sprintf("jos\u00e9.%d@b\u00fccher.example", i), fmt.Sprintf("JOS\u00c9.%d@xn--bcher-kva.example", i),
			fmt.Sprintf("jose\u0301.%d@bu\u0308cher.example", i), fmt.Sprintf("JOSE\u0301.%d@B\u00dcCHER.EXAMPLE", i), fmt.Sprintf("Jos\u00e9.%d@XN--BCHER-KVA.example", i)))
	}
	for i := range 3 {
		list = append(list, forms("external_id", fmt.Sprintf("\u00c5-%d", i), fmt.Sprintf("A\u030a-%d", i), fmt.Sprintf("\u212b-%d", i),
			fmt.Sprintf(" \u00c5-%d ", i), fmt.Sprintf("\tA\u030a-%d", i)))
	}
	return list
}

func forms(kind string, values ...string) (list []writtenAs) {
	for _, v := range values {
		list = append(list, writtenAs{kind, v})
	}
	return list
}

// TestOnePersonHoweverWritten creates each of forty people in each of five forms, and
// finds them in the other four: in batches, one by one, as further identities, by a
// filter, as senders and as recipients.
func TestOnePersonHoweverWritten(t *testing.T) {
	t.Parallel()
	everybody := people()
	if len(everybody) != 40 {
		t.Fatalf("%d people", len(everybody))
	}
	type rows struct {
		Data []struct {
			Status string
			ID     desk.ID
		}
	}
	s := newServer(t)
	for first := range 5 {
		var operations []string
		for _, p := range everybody {
			for i := range 5 {
				w := p[(first+i)%5]
				operations = append(operations, fmt.Sprintf(`{"op":"upsert","data":{%q:%q}}`, w.kind, w.value))
			}
			operations = append(operations, fmt.Sprintf(`{"op":"delete",%q:%q}`, p[(first+4)%5].kind, p[(first+4)%5].value))
		}
		var answered rows
		decodeJSON(t, s.want(200, "POST /v1/contacts/batch", `{"operations":[`+strings.Join(operations, ",")+`]}`), &answered)
		for n, row := range answered.Data {
			want := [6]string{"created", "updated", "updated", "updated", "updated", "deleted"}[n%6]
			if row.Status != want || row.ID != answered.Data[n-n%6].ID {
				t.Errorf("%s: %s %s, want %s", operations[n], row.Status, row.ID, want)
			}
		}
	}
	for _, p := range everybody {
		var made struct{ Data struct{ ID desk.ID } }
		decodeJSON(t, s.want(201, "POST /v1/contacts", fmt.Sprintf(`{%q:%q}`, p[0].kind, p[0].value)), &made)
		for _, w := range p[1:] {
			var got struct{ Data struct{ ID desk.ID } }
			decodeJSON(t, s.want(200, "POST /v1/contacts", fmt.Sprintf(`{"identities":[{"kind":%q,"value":%q}]}`, w.kind, w.value)), &got)
			var found struct{ Data []struct{ ID desk.ID } }
			decodeJSON(t, s.want(200, "GET /v1/contacts?"+url.Values{w.kind: {w.value}}.Encode(), ""), &found)
			if got.Data.ID != made.Data.ID || len(found.Data) != 1 || found.Data[0].ID != made.Data.ID {
				t.Errorf("%q and %q are two: %v, %v, %v", p[0].value, w.value, made.Data.ID, got.Data.ID, found.Data)
			}
		}
	}
	channel := s.addChannel("15550000001")
	for n, p := range everybody {
		if p[0].kind != "phone" {
			continue
		}
		number, err := desk.ParsePhone(p[1].value, "")
		if err != nil {
			t.Fatal(err)
		}
		heard := s.hear(channel, number, "Hello")
		var found struct{ Data []struct{ ID desk.ID } }
		decodeJSON(t, s.want(200, "GET /v1/contacts?"+url.Values{"phone": {p[0].value}}.Encode(), ""), &found)
		if len(found.Data) != 1 || found.Data[0].ID != heard.ContactID {
			t.Errorf("%d: %q wrote as %v, and is %v", n, number, heard.ContactID, found.Data)
		}
		if r := s.outbound(fmt.Sprint("key ", n), message(fmt.Sprintf(`"to":{"phone":%q}`, p[2].value))); r.status != 201 {
			t.Errorf("%q: %d %s", p[2].value, r.status, r.body)
		}
	}
	var all struct{ Data []struct{ ID desk.ID } }
	decodeJSON(t, s.want(200, "GET /v1/contacts?limit=200", ""), &all)
	if len(all.Data) != len(everybody) {
		t.Errorf("%d contacts of %d people", len(all.Data), len(everybody))
	}
}

// TestTwoPeople lists pairs of identities that look alike and belong to two people.
func TestTwoPeople(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, pair := range [][2]writtenAs{
		{{"email", "İ@x.example"}, {"email", "i@x.example"}},
		{{"email", "ß@x.example"}, {"email", "ss@x.example"}},
		{{"email", "ı@x.example"}, {"email", "i@x.example"}},
		{{"email", "a@faß.example"}, {"email", "a@fass.example"}},
		{{"email", "a.b@x.example"}, {"email", "ab@x.example"}},
		{{"email", "a+b@x.example"}, {"email", "a@x.example"}},
		{{"email", "é@x.example"}, {"email", "e@x.example"}},
		{{"external_id", "A"}, {"external_id", "a"}},
		{{"external_id", "É"}, {"external_id", "E"}},
		{{"phone", "+551134567890"}, {"phone", "+5511934567890"}}, // a landline gets no nine
		{{"phone", "+390669812345"}, {"phone", "+39669812345"}},   // Italy's zero counts
		{{"phone", "+78123456789"}, {"phone", "+7123456789"}},     // an area code, no trunk prefix
		{{"phone", "+12025550123"}, {"phone", "+442025550123"}},
	} {
		_, key := s.workspace("Two", "US")
		for _, w := range pair {
			body := fmt.Sprintf(`{%q:%q}`, w.kind, w.value)
			if r := s.as(key, "POST /v1/contacts", body); r.status != 201 {
				t.Errorf("%s beside %+v: %d %s", body, pair, r.status, r.body)
			}
		}
	}
}

// TestForgottenHoweverWritten: a person's marketing choice counts for every form of the
// number. If the person is deleted by another form, the sends in doubt are also erased.
func TestForgottenHoweverWritten(t *testing.T) {
	t.Parallel()
	s := newDesk(t)
	offer := `"template":{"name":"offer","language":"en_US","variables":["Ada","Grace","it"]}`
	to := func(phone string) string { return fmt.Sprintf(`"to":{"phone":%q}`, phone) }
	refuses := func(phone string) {
		t.Helper()
		if r := s.outbound("offer to "+phone, message(to(phone), offer)); r.status != 422 || errorType(r.body) != "recipient_opted_out" {
			t.Errorf("an offer to %s: %d %s", phone, r.status, r.body)
		}
	}
	for _, p := range []struct{ writes, is, is2 string }{
		{"+5511987650003", "+551187650003", "+55 (0) 11 8765 0003"},
		{"+551187660003", "+5511987660003", "0055 11 98766-0003"},
		{"+5215512340003", "+525512340003", "0052 55 1234 0003"},
		{"+525512350003", "+5215512350003", "+52 1 55 1235 0003"},
		{"+5491123450003", "+541123450003", "+54 11 15 2345 0003"},
		{"+541123460003", "+5491123460003", "+54 0 11 2346 0003"},
		{"+447700900003", "+44 (0)7700 900003", "0044 07700 900003"},
		{"+61 0412 340 003", "+61412340003", "0061 412 340 003"},
	} {
		heard := s.hear(s.channel, p.writes, "STOP")
		refuses(p.is)
		refuses(p.is2)
		if r := s.outbound("order to "+p.is, message(to(p.is))); r.status != 503 || errorType(r.body) != "send_outcome_unknown" {
			t.Errorf("an order to %s: %d %s", p.is, r.status, r.body)
		}
		deleted := s.want(200, "POST /v1/contacts/batch", fmt.Sprintf(`{"operations":[{"op":"delete","phone":%q}]}`, p.is2))
		if !strings.Contains(string(deleted), heard.ContactID.String()) {
			t.Errorf("%s is %s, deleted was %s", p.is2, heard.ContactID, deleted)
		}
		refuses(p.writes)
	}
	for n, p := range [][2]string{{"jos\u00e9@b\u00fccher.example", "JOSE\u0301@xn--bcher-kva.example"}, {"zoe\u0308@x.example", "ZO\u00cb@X.example"}} {
		phone := fmt.Sprintf("+120222%d0003", n+4)
		made := s.want(201, "POST /v1/contacts", fmt.Sprintf(`{"email":%q,"phone":%q}`, p[0], phone))
		if r := s.outbound("order to "+phone, message(to(phone))); r.status != 503 {
			t.Errorf("an order to %s: %d %s", phone, r.status, r.body)
		}
		var contact struct{ Data struct{ ID desk.ID } }
		decodeJSON(t, made, &contact)
		if deleted := s.want(200, "POST /v1/contacts/batch", fmt.Sprintf(`{"operations":[{"op":"delete","email":%q}]}`, p[1])); !strings.Contains(string(deleted), contact.Data.ID.String()) {
			t.Errorf("%s is %s, deleted was %s", p[1], contact.Data.ID, deleted)
		}
	}
	doubts, _, err := s.app.Attempts(t.Context(), s.operator(s.ws), app.AttemptFilter{Phase: desk.InDoubt}, "", 100)
	if err != nil || len(doubts) != 8+2 {
		t.Fatalf("%d attempts, %v", len(doubts), err)
	}
	for _, at := range doubts {
		if !at.Erased || at.Plan.Number != "" || at.Plan.Text != "" {
			t.Errorf("the deletion left %+v", at.Plan)
		}
	}
}
