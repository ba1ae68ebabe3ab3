package console

import (
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/app"
	"parley/desk"
	"parley/whatsapp/whatsapptest"
)

// meta starts a simulator of WhatsApp, and returns its address.
func meta(t *testing.T) (*whatsapptest.Simulator, string) {
	t.Helper()
	sim := whatsapptest.New(whatsapptest.Config{})
	server := httptest.NewServer(sim)
	t.Cleanup(server.Close)
	t.Cleanup(sim.Close)
	return sim, server.URL
}

// fetchedAt matches the time when templates were fetched, by the database's clock.
var fetchedAt = regexp.MustCompile(`fetched <time.*?</time>`)

// without removes from a response the parts that differ each time.
func (g got) without(what *regexp.Regexp) got {
	g.body = what.ReplaceAllString(g.body, "")
	return g
}

// TestChannels_address: an admin can't make the server send requests to its own network,
// unless the operator has allowed it.
func TestChannels_address(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nora := w.as(w.nora)
	nora.get("/settings/channels/new").want(200).lacks("graph_url")
	nora.post("/settings/channels/new", "phone_number_id", "200300400500600", "waba_id", "100200300400500", "token", "EAA", "app_secret", "x", "graph_url", "http://127.0.0.1:9").
		want(422, "Only whoever runs this server")

	// If the operator has allowed some addresses, the others are still refused.
	some := newWorldWith(t, func(d *app.Deps) {
		d.PlainHTTP, d.AddressRefused = true, func(a netip.Addr) bool { return a != netip.MustParseAddr("127.0.0.1") }
	})
	some.signedIn(some.nora).post("/settings/channels/new", "phone_number_id", "200300400500600", "waba_id", "100200300400500", "token", "EAA", "app_secret", "x", "graph_url", "http://127.0.0.2:9").
		want(422, "is not a public one")
}

func TestChannels(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(d *app.Deps) { d.PlainHTTP = true }) // the simulator is on this machine
	_, graph := meta(t)
	v := w.signedIn(w.nora)
	v.get("/settings/channels").want(200, "Sandbox shop", "Works").golden("channels/list")
	v.get("/settings/channels/new").want(200).golden("channels/new")

	// Errors are shown beside their fields, and secrets are not shown again.
	v.post("/settings/channels/new", "phone_number_id", "+90 212", "waba_id", "1", "token", "EAASECRET", "app_secret", "s3cret").want(422, "Error: ", "it is not the phone number", `value="&#43;90 212"`).
		lacks("EAASECRET", "s3cret").golden("channels/new-error")
	v.post("/settings/channels/new", "phone_number_id", "1", "waba_id", "1", "token", "a b", "app_secret", "x").want(422, "a letter that no secret has")
	v.post("/settings/channels/new", "phone_number_id", "200300400500600", "waba_id", "100200300400500", "token", "EAAWRONG", "app_secret", "x", "graph_url", graph).
		want(422, "so nothing was stored", "access token").lacks("EAAWRONG", "parley channel", "/v1/")
	if n := len(w.operator().Settings.Channels()); n != 1 {
		t.Fatalf("%d channels", n)
	}

	g := v.post("/settings/channels/new", "phone_number_id", "200300400500600", "waba_id", "100200300400500", "token", "EAATESTTOKEN", "app_secret", "app-secret-for-tests", "graph_url", graph).
		want(200, "is connected", "http://example.com/hooks/whatsapp/", "Copy it now").lacks("EAATESTTOKEN", "app-secret-for-tests", "parley channel")
	path := regexp.MustCompile(`/settings/channels/[0-9a-f-]{36}`).FindString(g.body)
	verify := regexp.MustCompile(`id="verify"><code>([0-9a-f]{32})<`).FindStringSubmatch(g.body)
	if path == "" || verify == nil {
		t.Fatalf("%s", g.body)
	}
	v.get(path).want(200, "WhatsApp 200300400500600", "Works", "None yet", "It is set.", "http://example.com/hooks/whatsapp/").
		lacks(verify[1], "EAATESTTOKEN", "app-secret-for-tests").without(fetchedAt).golden("channels/whatsapp")
	v.post("/settings/channels/new", "phone_number_id", "200300400500600", "waba_id", "100200300400500", "token", "EAATESTTOKEN", "app_secret", "app-secret-for-tests", "graph_url", graph).
		want(422, "This workspace has this number already")

	// Check the channel, edit it, and turn it off and on.
	v.post(path+"/check").want(200, "What the check found", "No callback has come").lacks("parley channel", "/v1/")
	v.post(path, "per_second", "1001", "token", "", "app_secret", "", "verify_token", "").want(422, "1 to 1000")
	v.post(path, "per_second", "many").want(422)
	v.post(path, "per_second", "200", "token", "EAAWRONG").want(422, "access token").lacks("EAAWRONG")
	v.post(path, "per_second", "200", "token", "EAATESTTOKEN", "verify_token", "mine").sends(path + "?done=saved")
	v.get(path).want(200, `value="200"`)
	v.post(path+"/enable", "enabled", "no").sends(path + "?done=turned-off")
	v.get(path).want(200, "Turned off", "Turn on").without(fetchedAt).golden("channels/off")
	v.post(path+"/check").want(200, "Turn it on below.")
	v.post(path+"/enable", "enabled", "yes").sends(path + "?done=turned-on")

}

// TestChannels_states: the page describes each state of a WhatsApp account in words.
func TestChannels_states(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := &call{s: w.server, now: time.UnixMilli(w.clock.Load()), zone: time.UTC}
	now := desk.TimeOf(c.now)
	for _, s := range []struct {
		channel desk.Channel
		state   string
		text    string
	}{
		{desk.Channel{Enabled: true}, "Works", "Messages can be sent."},
		{desk.Channel{}, "Turned off", "Nothing is sent"},
		{desk.Channel{Enabled: true, Status: desk.AccountStatus{Blocked: "it is locked", Since: now}}, "Blocked", "WhatsApp lets it send nothing since 09:30 (UTC): It is locked."},
		{desk.Channel{Enabled: true, Status: desk.AccountStatus{Blocked: "it wrote to strangers", Replies: true, Since: now}}, "Replies only", "Since 09:30 (UTC), people who wrote can be answered, and no template can be sent: It wrote to strangers."},
		{desk.Channel{Enabled: true, Status: desk.AccountStatus{Blocked: "the token has expired", Code: 190, Since: now, ByCall: true}}, "Refused", "since 09:30 (UTC): The token has expired. (Code 190.) It works again once"},
		{desk.Channel{Enabled: true, Status: desk.AccountStatus{Blocked: "it is locked", Since: now, Until: now}}, "Works", ""},
	} {
		state, text := c.channelState(&s.channel)
		if state.Text != s.state || !strings.Contains(text, s.text) {
			t.Errorf("%+v: %s, %s", s.channel, state.Text, text)
		}
	}
}

func TestChannels_sandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.signedIn(w.nora)
	v.get("/settings/channels/new-sandbox").want(200)
	v.post("/settings/channels/new-sandbox", "external_id", "shop").want(422, "Another channel of this workspace has this external id")
	g := v.post("/settings/channels/new-sandbox", "external_id", "trial")
	path := strings.TrimSuffix(g.header.Get("Location"), "?done=added")
	v.get(path).want(200, "Sandbox trial", "Write as a new customer").lacks("Access token", "Callback").golden("channels/sandbox")
	v.post(path+"/check").want(200, "The check found nothing wrong.")
	v.post(path+"/customer", "from", "1", "name", "Ivo", "text", "Hello").want(422, `value="Ivo"`)
	g = v.post(path+"/customer", "from", "+34 612 34 56 78", "name", "Ivo", "text", "Hello")
	thread := g.header.Get("Location")
	v.get(thread).want(200, "Ivo", "Hello", "<bdi>Sandbox trial</bdi>") // there are two sandboxes
	v.post(path, "per_second", "5").want(422, "A sandbox channel has no token")

	// The name tells this channel from the others.
	v.post(path, "channel_name", strings.Repeat("x", 101)).want(422, "at most 100 characters", `href="#f-channel_name"`)
	v.post(path, "channel_name", " Shop in İzmir ").sends(path + "?done=saved")
	v.get(path).want(200, "<h1><bdi>Shop in İzmir</bdi></h1>", "trial")
	v.get("/settings/channels").want(200, "Shop in İzmir").lacks("Sandbox trial")
	v.get("/inbox?view=open").want(200, "Shop in İzmir")
	v.get(thread).want(200, "<bdi>Shop in İzmir</bdi>")

	// A person who writes on two channels has two rows, which name the channels.
	labelled := `<span class="holder"><bdi>Shop in İzmir</bdi></span>`
	v.get("/inbox?view=open").lacks(labelled)
	v.post("/settings/channels/"+w.channel.String()+"/customer", "from", "+34 612 34 56 78", "name", "Ivo", "text", "Here, too")
	v.get("/inbox?view=open").want(200, labelled)
	v.post(path, "channel_name", "").sends(path + "?done=saved")
	v.get(path).want(200, "Sandbox trial")
	v.post("/settings/channels/new-sandbox", "external_id", "named", "channel_name", strings.Repeat("x", 101)).want(422, "at most 100 characters")
	named := v.post("/settings/channels/new-sandbox", "external_id", "named", "channel_name", "Café")
	v.get(strings.TrimSuffix(named.header.Get("Location"), "?done=added")).want(200, "<h1><bdi>Café</bdi></h1>")
	v.post(path, "channel_name", "Café").sends(path + "?done=saved") // now two channels have the same name
	v.get(path).want(200, "<h1><bdi>Café trial</bdi></h1>")
	v.get("/settings/channels").want(200, "Café trial", "Café named")
	v.get(thread).want(200, "<bdi>Café trial</bdi>")
	nobody := "/settings/channels/" + w.newID().String()
	for _, p := range []string{nobody, "/settings/channels/x"} {
		v.get(p).want(404)
		v.post(p).want(404)
		v.post(p + "/check").want(404)
		v.post(p + "/enable").want(404)
	}
}
