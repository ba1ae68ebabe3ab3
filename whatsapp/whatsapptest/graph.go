package whatsapptest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// versioned is a path of the Graph API: version, object, and perhaps an edge.
var versioned = regexp.MustCompile(`^/(v\d+\.0)/([^/]+)(?:/([^/]+))?/?$`)

// A call is a call to the Graph API.
type call struct {
	w             http.ResponseWriter
	r             *http.Request
	version       string
	id, edge      string
	trace         string
	usage, regain int
}

// ServeHTTP serves the Graph API and the control API.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_sim/") || r.URL.Path == "/_sim" {
		s.control.ServeHTTP(w, r)
		return
	}
	c := s.newCall(w, r)
	if strings.HasPrefix(r.URL.Path, "/_media/") {
		s.serveMedia(c)
		return
	}
	parts := versioned.FindStringSubmatch(r.URL.Path)
	if parts == nil {
		s.answer(c, nil, refusal(2500, "%s is neither /v{N}.0/{id} nor /v{N}.0/{id}/{edge}", r.URL.Path))
		return
	}
	c.version, c.id, c.edge = parts[1], parts[2], parts[3]
	switch {
	case r.Method == http.MethodPost && c.edge == "messages":
		s.postMessage(c)
		return
	case r.Method == http.MethodPost && c.edge == "media":
		s.postMedia(c)
		return
	}
	body, fail := s.graph(c)
	s.answer(c, body, fail)
}

func (s *Simulator) newCall(w http.ResponseWriter, r *http.Request) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return &call{w: w, r: r, trace: fmt.Sprintf("ASim%08d", s.made), usage: s.set.Usage}
}

// answer writes the body or the failure.
func (s *Simulator) answer(c *call, body any, fail *Failure) {
	status := http.StatusOK
	if fail != nil {
		fail = fail.filled()
		status, body = fail.HTTP, fail.body(c.trace)
		c.w.Header().Set("WWW-Authenticate", fail.challenge())
		if fail.Code == 130429 || fail.Code == 4 || fail.Code == 80007 || fail.Code == 80008 {
			c.usage, c.regain = 100, s.settings().RegainMinutes
		}
	}
	s.head(c)
	c.w.WriteHeader(status)
	c.w.Write(compact(body))
	s.logCall(c, status)
}

func (s *Simulator) logCall(c *call, status any) {
	s.c.Log.Info("graph", "call", c.r.Method+" "+c.r.URL.Path, "status", status, "trace", c.trace)
}

// head sets the headers of every response.
func (s *Simulator) head(c *call) {
	h := c.w.Header()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	h.Set("X-Business-Use-Case-Usage", fmt.Sprintf(
		`{"%s":[{"type":"whatsapp_business_management","call_count":%d,"total_cputime":%d,"total_time":%d,"estimated_time_to_regain_access":%d}]}`,
		s.c.BusinessID, c.usage, c.usage/3, c.usage/2, c.regain))
	h.Set("X-App-Usage", fmt.Sprintf(`{"call_count":%d,"total_cputime":%d,"total_time":%d}`, c.usage/3, c.usage/4, c.usage/3))
	h.Set("x-fb-trace-id", c.trace)
	h.Set("x-fb-request-id", "R"+c.trace)
	h.Set("facebook-api-version", c.version)
}

// allowed returns a failure if the token or its proof is wrong.
func (s *Simulator) allowed(c *call) *Failure {
	scheme, token, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	appToken := s.c.AppID + "|" + s.c.AppSecret
	if !strings.EqualFold(scheme, "Bearer") || token != s.c.Token && (token != appToken || c.id != "debug_token") {
		return refusal(190, "")
	}
	set := s.settings()
	query := c.r.URL.Query()
	if proof := query.Get("appsecret_proof"); query.Has("appsecret_proof") && proof != sum(s.c.AppSecret, []byte(token)) {
		return &Failure{Code: 100, HTTP: http.StatusBadRequest, Message: "Invalid appsecret_proof provided in the API argument"}
	} else if set.RequireProof && proof == "" {
		return &Failure{Code: 100, HTTP: http.StatusBadRequest, Message: "API calls from the server require an appsecret_proof argument"}
	}
	if f := set.Fault; f != nil && token != appToken && c.id != "debug_token" && (f.Code < 1000 || c.edge == "messages") {
		return f
	}
	return nil
}

// graph handles all calls except messages.
func (s *Simulator) graph(c *call) (any, *Failure) {
	if fail := s.allowed(c); fail != nil {
		return nil, fail
	}
	method := c.r.Method
	node := s.node(c.id)
	if c.id != "debug_token" && node == "" || method != http.MethodGet && (method != http.MethodPost || c.edge != "subscribed_apps") {
		return nil, missingObject(strings.ToLower(method), c.id)
	}
	switch route := node + "/" + c.edge; route {
	case "/":
		return s.debugToken(c.r.URL.Query())
	case business + "/":
		return s.object(c, s.business(), "currency", "country")
	case phone + "/":
		return s.object(c, s.phone(), "certificate", "is_official_business_account", "last_onboarded_time", "messaging_limit_tier", "search_visibility")
	case media + "/":
		return s.mediaNode(c)
	case template + "/":
		return s.object(c, s.templateByID(c.id), templateFields...)
	case business + "/phone_numbers":
		numbers := []Template{s.phone()}
		return s.page(c, numbers, Paging{}, phone, slices.Collect(maps.Keys(numbers[0])))
	case business + "/message_templates":
		return s.page(c, s.Templates(), s.settings().Paging, template, templateFields)
	case business + "/subscribed_apps":
		if method == http.MethodPost {
			return s.subscribe(c)
		}
		return s.subscribedApps(), nil
	}
	if slices.Contains(edges, c.edge) {
		return nil, missingField(c.edge, node)
	}
	return nil, refusal(2500, "there is no edge %s", c.edge)
}

// The kinds of objects.
const (
	business = "WhatsAppBusinessAccount"
	phone    = "WhatsAppBusinessPhoneNumber"
	template = "WhatsAppBusinessHSM"
	media    = "WhatsAppMedia"
)

var edges = []string{"media", "message_templates", "messages", "phone_numbers", "subscribed_apps"}

// templateFields can be requested even if a template lacks them.
var templateFields = []string{
	"id", "name", "language", "status", "category", "sub_category", "parameter_format", "components", "quality_score",
	"rejected_reason", "previous_category", "correct_category", "message_send_ttl_seconds", "cta_url_link_tracking_opted_out",
	"library_template_name", "degrees_of_freedom_spec", "health_status",
}

// node returns the kind of the object with an id, or "" if there is none.
func (s *Simulator) node(id string) string {
	switch {
	case id == s.c.BusinessID:
		return business
	case id == s.c.PhoneNumberID:
		return phone
	case s.templateByID(id) != nil:
		return template
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file(id) != nil {
		return media
	}
	return ""
}

func (s *Simulator) templateByID(id string) Template {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.templates, func(t Template) bool { return t.text("id") == id }); i >= 0 {
		return s.templates[i]
	}
	return nil
}

func (s *Simulator) business() Template {
	b := Template{
		"id": s.c.BusinessID, "name": "Örnek Mağaza", "timezone_id": "134", "account_review_status": "APPROVED",
		"message_template_namespace": "b1a2c3d4_0000_4000_8000_000000000001",
	}
	maps.Copy(b, s.settings().Business)
	return b
}

func (s *Simulator) phone() Template {
	p := sample("phone_number.json", "200300400500600", s.c.PhoneNumberID, "100200300400500", s.c.BusinessID, "400500600700800", s.c.AppID)
	if s.c.DisplayNumber != "902125550101" {
		p["display_phone_number"] = "+" + s.c.DisplayNumber
	}
	set := s.settings()
	if len(set.Recipients) > 0 {
		p["account_mode"] = "SANDBOX"
	}
	maps.Copy(p, set.Phone)
	return p
}

// sample reads an object from testdata and replaces its ids.
func sample(name string, oldnew ...string) Template {
	b, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		panic(err) // it is embedded in the program
	}
	var t Template
	if err := numbers([]byte(strings.NewReplacer(oldnew...).Replace(string(b))), &t); err != nil {
		panic(err)
	}
	return t
}

func (s *Simulator) debugToken(query url.Values) (any, *Failure) {
	set := s.settings()
	invalid := set.Fault
	if query.Get("input_token") != s.c.Token {
		invalid = &Failure{Code: 190, Message: "Invalid OAuth access token - Cannot parse access token"}
	}
	if invalid != nil && invalid.Code == 190 {
		f := invalid.filled()
		e := map[string]any{"code": f.Code, "message": f.Message}
		if f.Subcode != 0 {
			e["subcode"] = f.Subcode
		}
		return map[string]any{"data": map[string]any{"is_valid": false, "error": e, "scopes": []any{}}}, nil
	}
	answer := sample("debug_token.json", "100200300400500", s.c.BusinessID, "400500600700800", s.c.AppID)
	if data, ok := answer["data"].(map[string]any); ok {
		maps.Copy(data, set.TokenInfo)
	}
	return answer, nil
}

// object returns the requested fields of an object. A call may also request the fields in
// also.
func (s *Simulator) object(c *call, o Template, also ...string) (any, *Failure) {
	return project(c, o, also, s.node(c.id))
}

// project returns the requested fields, or all fields if none were requested. An unknown
// field is an error.
func project(c *call, o Template, also []string, node string) (Template, *Failure) {
	asked := c.r.URL.Query().Get("fields")
	if asked == "" {
		return o, nil
	}
	kept := Template{"id": o["id"]}
	for field := range strings.SplitSeq(asked, ",") {
		value, ok := o[field]
		if ok {
			kept[field] = value
		} else if !slices.Contains(also, field) {
			return nil, missingField(field, node)
		}
	}
	return kept, nil
}

// A place is the start of a page, and the page's number.
type place struct{ at, page int }

func (p place) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", p.at, p.page))
}

func placeOf(cursor string) (p place, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%d.%d", &p.at, &p.page)
	}
	return p, err
}

// listParams are the parameters of a list. Others are refused: Graph would filter by
// them or ignore them, and a client could not tell which.
var listParams = []string{"fields", "limit", "after", "appsecret_proof"}

// page returns a page of a list.
func (s *Simulator) page(c *call, list []Template, paging Paging, node string, known []string) (any, *Failure) {
	query := c.r.URL.Query()
	for key := range query {
		if !slices.Contains(listParams, key) {
			return nil, refusal(100, "the simulator does not know the parameter %s of a list", key)
		}
	}
	if _, fail := project(c, nil, known, node); fail != nil {
		return nil, fail // even if the list is empty
	}
	limit, here := 25, place{0, 1}
	var err error
	if text := query.Get("limit"); query.Has("limit") {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, refusal(100, "Param limit must be a positive integer, is %s", text)
		}
	}
	if after := query.Get("after"); after != "" {
		if here, err = placeOf(after); err != nil || here.at < 0 || here.page < 1 {
			return nil, refusal(100, "the cursor after is not valid")
		}
	}
	if paging.Size > 0 {
		limit = min(limit, paging.Size)
	}
	switch here.page {
	case paging.FailOnPage:
		return nil, refusal(2, "")
	case paging.EmptyPage:
		limit = 0
	}
	from := min(here.at, len(list))
	to := min(from+limit, len(list))
	next, more := place{to, here.page + 1}, to < len(list) || here.page == paging.EmptyPage
	if paging.Loop && here.page > 1 {
		next, more = here, true
	}
	data := []any{}
	for _, t := range list[from:to] {
		kept, fail := project(c, t, known, node)
		if fail != nil {
			return nil, fail
		}
		data = append(data, kept)
	}
	links := map[string]any{"cursors": map[string]any{"before": here.cursor(), "after": next.cursor()}}
	if more || paging.Loop {
		links["next"] = link(c.r, "after", next.cursor())
	}
	if here.page > 1 {
		links["previous"] = link(c.r, "before", here.cursor())
	}
	return map[string]any{"data": data, "paging": links}, nil
}

// link returns the call's URL with another cursor.
func link(r *http.Request, key, cursor string) string {
	query := r.URL.Query()
	query.Del("after")
	query.Del("appsecret_proof")
	query.Set(key, cursor)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: r.Host, Path: r.URL.Path, RawQuery: query.Encode()}).String()
}

func (s *Simulator) subscribedApps() any {
	data := []any{}
	if set := s.settings(); !set.Unsubscribed {
		data = append(data, map[string]any{"whatsapp_business_api_data": map[string]any{
			"id": s.c.AppID, "name": "parley-test", "link": "https://example.test/app",
		}})
	}
	return map[string]any{"data": data}
}

// subscribe turns webhooks on. If the call has another URL, and the handshake with it
// succeeds, webhooks go there.
func (s *Simulator) subscribe(c *call) (any, *Failure) {
	raw, err := io.ReadAll(io.LimitReader(c.r.Body, 1<<20))
	if err != nil {
		return nil, refusal(100, "the body can't be read")
	}
	var in struct {
		URL   string `json:"override_callback_uri"`
		Token string `json:"verify_token"`
	}
	if len(raw) > 0 {
		if !isJSON(c.r) || strictly(raw, &in) != nil {
			return nil, refusal(100, "the body must be JSON with override_callback_uri and verify_token, or empty")
		}
		if (in.URL == "") != (in.Token == "") {
			return nil, refusal(100, "override_callback_uri and verify_token go together")
		}
	}
	if in.URL != "" {
		if err := s.verify(c.r.Context(), in.URL, in.Token); err != nil {
			return nil, &Failure{Code: 2200, HTTP: http.StatusBadRequest, Message: "(#2200) Callback verification failed", Details: err.Error()}
		}
		s.SetWebhook(in.URL, in.Token)
	}
	s.Configure(func(set *Settings) { set.Unsubscribed = false })
	return map[string]any{"success": true}, nil
}

func isJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// jsonText encodes a string as JSON.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
