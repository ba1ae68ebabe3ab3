package whatsapp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"parley/desk"
	"parley/provider"
)

// A graph is a server with a response for each request. The key is the method, the path
// and the first of the fields, as in "GET 123/phone_numbers id". A response that begins
// with a number is an error.
type graph map[string]string

// healthy returns the responses for an account without problems.
func healthy(t *testing.T) graph {
	return graph{
		"GET debug_token":                         string(fixture(t, "debug_token")),
		"GET debug_token by the app":              string(fixture(t, "debug_token")),
		"GET " + waba + " id":                     `{"id":"` + waba + `","account_review_status":"APPROVED"}`,
		"GET " + numberID + " id":                 string(fixture(t, "phone_number")),
		"GET " + numberID + " health_status":      string(fixture(t, "phone_number")),
		"GET " + waba + "/phone_numbers id":       page("2"),
		"GET " + waba + "/phone_numbers id 2":     `{"data":[{"id":"1"},{"id":"` + numberID + `"}]}`,
		"GET " + waba + "/subscribed_apps":        string(fixture(t, "subscribed_apps")),
		"GET " + waba + "/message_templates name": `{"data":[]}`,
		"POST " + waba + "/subscribed_apps":       `{"success":true}`,
	}
}

func (g graph) serve(t *testing.T) provider.Access {
	t.Helper()
	return access(serve(t, func(w http.ResponseWriter, r *http.Request) {
		field, _, _ := strings.Cut(r.FormValue("fields"), ",")
		asked := strings.TrimSpace(r.Method + " " + strings.TrimPrefix(r.URL.Path, "/v26.0/") + " " + field)
		if after := r.FormValue("after"); after != "" {
			asked += " " + after
		}
		if r.Header.Get("Authorization") == "Bearer "+appID+"|"+appSecret {
			asked += " by the app"
		} else if r.FormValue("appsecret_proof") == "" {
			asked += " without proof"
		}
		answer, ok := g[asked]
		if !ok {
			answer, ok = g[strings.TrimSuffix(asked, " without proof")]
		}
		if !ok {
			answer = "100 33"
		}
		if answer[0] == '{' {
			_, _ = w.Write([]byte(answer))
			return
		}
		code, sub, _ := strings.Cut(answer, " ")
		w.WriteHeader(http.StatusBadRequest)
		n, _ := strconv.Atoi(code)
		subcode, _ := strconv.Atoi(sub)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": n, "error_subcode": subcode}})
	}))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const block, warn = "block: ", "warn: "
	edit := func(name, old, by string) func(graph) {
		return func(g graph) {
			for key := range g {
				if key == name || key == name+" by the app" {
					edited := strings.ReplaceAll(g[key], old, by)
					if edited == g[key] {
						t.Errorf("%s: there is no %s", key, old)
					}
					g[key] = edited
				}
			}
		}
	}
	set := func(name, to string) func(graph) { return func(g graph) { g[name] = to } }
	// stored lists the problems that end when a secret is stored again.
	stored := map[string]desk.AdviceKind{
		"does not accept the access token": desk.StoreToken, "the access token expire": desk.StoreToken, "the access token is not valid": desk.StoreToken,
		"the app secret is not the secret of": desk.StoreAppSecret, "to the access token's app": desk.StoreToken,
	}
	const debug, phone, health = "GET debug_token", "GET " + numberID + " id", "GET " + numberID + " health_status"
	for _, c := range []struct {
		name string
		do   func(graph)
		want []string // texts that the problems contain
	}{
		{"nothing", func(graph) {}, nil},
		{"token refused", set(debug, "190 463"), []string{block + "does not accept the access token (code 190)"}},
		{"token invalid", edit(debug, `"is_valid": true`, `"is_valid":false`), []string{block + "the access token is not valid"}},
		{"token expired", edit(debug, `"expires_at": 0`, `"expires_at":1780000000`), []string{block + "expired on 2026-05-28 20:26 UTC"}},
		{"token expires", edit(debug, `"expires_at": 0`, `"expires_at":1790500000`), []string{warn + "expires on 2026-09-27"}},
		{"token may not ask", set(debug, "10"), nil},
		{"token refused later", set("GET "+waba+" id", "190"), []string{block + "does not accept the access token"}},
		{"no permission", edit(debug, `"whatsapp_business_messaging"`, `"email"`), []string{block + "lacks the permission whatsapp_business_messaging"}},
		{"another account's", edit(debug, waba, "7"), []string{block + "whatsapp_business_messaging does not extend to the business account " + waba, block + "whatsapp_business_management"}},
		{"wrong app secret", set(debug+" by the app", "190"), []string{block + "the app secret is not the secret of the access token"}},
		{"wrong app secret, and a proof is required", func(g graph) {
			for key := range maps.Clone(g) {
				if strings.HasPrefix(key, "GET") {
					g[key+" without proof"] = g[key]
					g[key] = "100"
				}
			}
		}, []string{block + "the app secret is not the secret of the access token"}},
		{"no account", set("GET "+waba+" id", "100 33"), []string{block + "there is no business account " + waba}},
		{"wrong app secret, and nothing goes without", func(g graph) {
			for key := range g {
				g[key] = "100"
			}
		}, []string{block + "check the waba-id, and the app secret", block + "not the number itself, and the app secret"}},
		{"a number for an account", func(g graph) {
			g["GET "+waba+" id"] = "100"
			g["GET "+waba+" display_phone_number"] = `{"display_phone_number":"1"}`
		}, []string{block + "names a phone number, not a business account"}},
		{"no number", set(phone, "100 33"), []string{block + "there is no phone number " + numberID}},
		{"an account for a number", func(g graph) {
			g[phone] = "100"
			g["GET "+numberID+"/phone_numbers id"] = `{"data":[]}`
		}, []string{block + "names a business account, not a phone number"}},
		{"another account's number", set("GET "+waba+"/phone_numbers id 2", `{"data":[{"id":"1"},{"id":"2"}]}`), []string{block + "which has: 1, 2"}},
		{"numbers not shown", set("GET "+waba+"/phone_numbers id", "10"), []string{block + "does not show its numbers (code 10"}},
		{"not on the Cloud API", edit(phone, "CLOUD_API", "ON_PREMISE"), []string{block + "not on the Cloud API (ON_PREMISE)"}},
		{"not connected", edit(phone, `"CONNECTED"`, `"PENDING"`), []string{block + "not connected (PENDING)"}},
		{"flagged", edit(phone, `"CONNECTED"`, `"FLAGGED"`), []string{warn + "FLAGGED"}},
		{"a new status", edit(phone, `"CONNECTED"`, `"NEW"`), []string{warn + "NEW, not CONNECTED"}},
		{"bad quality", edit(phone, `"GREEN"`, `"RED"`), []string{warn + "quality RED"}},
		{"falling quality", edit(phone, `"GREEN"`, `"YELLOW"`), []string{warn + "YELLOW"}},
		{"not verified", edit(phone, `"VERIFIED"`, `"NOT_VERIFIED"`), []string{warn + "NOT_VERIFIED"}},
		{"a test number", edit(phone, `"LIVE"`, `"SANDBOX"`), []string{warn + "test number"}},
		{"health unknown", set(health, "100"), nil},
		{"blocked", set(health, `{"health_status":{"can_send_message":"BLOCKED","entities":[7,{"entity_type":"WABA","errors":[{"error_description":"No payment.","possible_solution":"Add a card."}]}]}}`),
			[]string{block + "WABA: No payment. Add a card."}},
		{"limited", set(health, `{"health_status":{"can_send_message":"LIMITED"}}`), []string{warn + "limits what the number may send"}},
		{"not subscribed", set("GET "+waba+"/subscribed_apps", `{"data":[]}`), []string{block + "to the access token's app, so statuses"}},
		{"another app subscribed", edit("GET "+waba+"/subscribed_apps", appID, "1"), []string{block + "to the access token's app, but to other apps"}},
		{"templates forbidden", set("GET "+waba+"/message_templates name", "200"), []string{block + "may not list the templates (code 200"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := healthy(t)
			c.do(g)
			at := g.serve(t)
			problems, err := newProvider().Check(t.Context(), at)
			if err != nil || len(problems) != len(c.want) {
				t.Fatalf("%+v, %v", problems, err)
			}
			for i, p := range problems {
				kind, words, _ := strings.Cut(c.want[i], ": ")
				if !strings.Contains(p.Text, words) || p.Blocking != (kind == "block") || p.Unsubscribed != strings.HasPrefix(words, "to the access token's app") {
					t.Errorf("%+v", p)
				}
				var advice desk.Advice
				for words, kind := range stored {
					if strings.Contains(p.Text, words) {
						advice = desk.Advice{Kind: kind, Arg: at.Channel.ID.String()}
					}
				}
				if p.Advice != advice {
					t.Errorf("%s: the advice is %+v, want %+v", p.Text, p.Advice, advice)
				}
				if strings.Contains(p.Text, token) || strings.Contains(p.Text, appSecret) {
					t.Errorf("%s", p.Text)
				}
			}
		})
	}
}

// TestCheck_unknown: if Meta does not answer the check, this is not a problem of the
// channel.
func TestCheck_unknown(t *testing.T) {
	t.Parallel()
	for _, asked := range []string{"GET debug_token", "GET debug_token by the app", "GET " + waba + " id", "GET " + numberID + " id", "GET " + waba + "/phone_numbers id", "GET " + waba + "/subscribed_apps", "GET " + waba + "/message_templates name"} {
		g := healthy(t)
		g[asked] = "2"
		if problems, err := newProvider().Check(t.Context(), g.serve(t)); len(problems) != 0 || !desk.IsType(err, desk.Unavailable) {
			t.Errorf("%s: %v, %v", asked, problems, err)
		}
	}
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]desk.ErrorType{
		`{"success":true}`: "", `{"success":false}`: desk.Unavailable, `{}`: desk.Unavailable, "200": desk.InvalidRequest, "2": desk.Unavailable,
	} {
		g := graph{"POST " + waba + "/subscribed_apps": answer}
		if err := newProvider().Subscribe(t.Context(), g.serve(t)); (err != nil || want != "") && !desk.IsType(err, want) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
