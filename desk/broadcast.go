package desk

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A BroadcastState is the state of a broadcast (contract-broadcast §2).
type BroadcastState string

// The states. Deleted is not shown: its rows are still being deleted.
const (
	BroadcastDraft     BroadcastState = "draft"
	BroadcastScheduled BroadcastState = "scheduled"
	BroadcastRunning   BroadcastState = "running"
	BroadcastPaused    BroadcastState = "paused"
	BroadcastDone      BroadcastState = "done"
	BroadcastCancelled BroadcastState = "cancelled"
	BroadcastDeleted   BroadcastState = "deleted"
)

// BroadcastStates lists the states that callers see, in the order of a broadcast's life.
var BroadcastStates = []BroadcastState{BroadcastDraft, BroadcastScheduled, BroadcastRunning, BroadcastPaused, BroadcastDone, BroadcastCancelled}

// ParseBroadcastState reads the name of a state.
func ParseBroadcastState(s string) (BroadcastState, error) {
	if state := BroadcastState(s); slices.Contains(BroadcastStates, state) {
		return state, nil
	}
	return "", InvalidAt("/state", "send draft, scheduled, running, paused, done or cancelled")
}

// Ended tells whether nothing is sent any more.
func (s BroadcastState) Ended() bool { return s == BroadcastDone || s == BroadcastCancelled }

// A BroadcastReason says what a running broadcast waits for, or why one is paused.
type BroadcastReason string

// The reasons. A running broadcast waits for the first four; the others are of a paused one.
const (
	WaitsForHours    BroadcastReason = "hours"
	WaitsForPace     BroadcastReason = "pace"
	WaitsForProvider BroadcastReason = "provider"
	WaitsForPeople   BroadcastReason = "collecting" // who fits its audience is written down

	PausedAsked    BroadcastReason = "asked"
	PausedStarter  BroadcastReason = "starter"
	PausedTemplate BroadcastReason = "template"
	PausedFile     BroadcastReason = "file"
	PausedChannel  BroadcastReason = "channel"
	PausedFailures BroadcastReason = "failures"
	PausedTooMany  BroadcastReason = "too_many"
	PausedStopped  BroadcastReason = "stopped"
)

// The limits of broadcasts (contract-broadcast §2).
const (
	MaxBroadcastName     = 100
	MaxBroadcastValue    = 1024
	maxBroadcastValues   = 100
	MaxBroadcastPeople   = 1_000_000
	MaxBroadcastMinutes  = 24 * 60
	MaxActiveBroadcasts  = 20  // running or paused
	MaxPlannedBroadcasts = 200 // drafts and scheduled
	MaxBroadcastRows     = 1_000_000
	MaxAllBroadcastRows  = 10_000_000 // of a workspace

	// UsualMaxFailed is the share of failures, in percent, that pauses a broadcast, unless it
	// says another.
	UsualMaxFailed = 20

	farthestStart = 366 * 24 * time.Hour
)

// Times and limits of the driver (contract-broadcast §4).
const (
	// BroadcastTask is the name of the lease with which a process drives the broadcasts of a
	// workspace.
	BroadcastTask  = "broadcast"
	BroadcastLease = 15 * time.Second

	// A broadcast that nobody drove for BroadcastStopped is paused, and so is one that should
	// have begun so long ago.
	BroadcastStopped = 15 * time.Minute

	// BroadcastFlights is how many messages of a workspace's broadcasts are sent at a time.
	BroadcastFlights = 64

	// BroadcastsBeside is how many people all broadcasts of a process take a second, for each of
	// its cores, while others write. So two cores are enough for the share that broadcasts have
	// of a number that may send 80 a second. BroadcastsBesideFor is how long a write counts.
	BroadcastsBeside    = 32
	BroadcastsBesideFor = time.Second

	// BroadcastSkips is how many rows one transaction skips, cancels or deletes.
	BroadcastSkips = 1000

	// LongestBroadcastWait is the longest wait after a refusal for now. After
	// MaxPersonRefusals of such refusals a person is given up.
	LongestBroadcastWait = 15 * time.Minute
	MaxPersonRefusals    = 10

	// FailureWindow is how many of the newest outcomes can pause a broadcast, if there are at
	// least LeastOutcomes.
	FailureWindow = 200
	LeastOutcomes = 50

	// MaxReleased is how many rows one call releases.
	MaxReleased = 1000

	// KeepRows is how long rows stay after the end of their broadcast, unless it is configured;
	// LeastKeepRows is the least time.
	KeepRows      = 90 * 24 * time.Hour
	LeastKeepRows = 30 * 24 * time.Hour

	// DormantLife is how old the last message of a dormant conversation may be when the
	// conversation is opened again.
	DormantLife = 30 * 24 * time.Hour
)

// A Broadcast sends one template to each person of its rows (contract-broadcast §2).
type Broadcast struct {
	ID        ID
	Name      string
	State     BroadcastState
	Reason    BroadcastReason // "": none
	ResumesAt Time            // 0: it does not wait, or it is not known
	Channel   ID              // zero: the workspace's only one, until the start
	Template  string
	Language  string
	Category  string           // "": the template is not known
	Values    []BroadcastValue // sorted by address
	Audience  *Audience        // nil: the rows that callers add
	Consent   *Consent         // nil: it can't start
	AtMost    int64            // people; 0: no limit
	SkipOpen  *bool            // nil: if the template is marketing
	SendAt    Time             // 0: at once
	StopAt    Time             // 0: never
	Hours     *Hours
	Pace      *BroadcastPace
	MaxFailed int // percent

	CreatedBy Actor
	StartedBy Actor // zero: not started
	CreatedAt Time
	StartedAt Time // 0: not started
	EndedAt   Time // 0: not ended
	UpdatedAt Time

	Shape     string   // of the template at the start: what was checked
	Untidy    bool     // it has ended, is deleted, or its rows were cleared, and they are not cancelled or deleted yet
	ResumedAt Time     // when it was last started or resumed: older outcomes do not pause it
	DrivenAt  Time     // by the database's clock: when it was known to be driven
	Collect   *Collect // of a started one with an Audience: how far its people are written down
	Rows      int64
	Counts    *BroadcastCounts // nil: they were not read
}

// A BroadcastValue says what fills a variable.
type BroadcastValue struct {
	Address string
	Value   string // the value of all people; "": see From
	From    string // a binding, attributes.KEY, or row
	Else    string // instead of an empty one; "": none
}

// FromRow is the From of a value that each row has.
const FromRow = "row"

// fromAttribute is how the From of a contact's attribute begins.
const fromAttribute = "attributes."

// Consent says how the people of a broadcast agreed to be written to: the caller asserts it,
// or a boolean attribute of each contact says it.
type Consent struct {
	Confirmed bool
	Attribute string
}

// A BroadcastPace limits how many people are sent to in any so many minutes.
type BroadcastPace struct {
	People  int
	Minutes int
}

// A BroadcastInput is a broadcast as it was sent. Null stands for the default.
type BroadcastInput struct {
	Name      Field[string]
	Channel   Field[ID]
	Template  Field[TemplateName]
	Values    Field[[]BroadcastValue]
	Audience  Field[Audience] // null: the rows that callers add
	Consent   Field[Consent]
	AtMost    Field[int64]
	SkipOpen  Field[bool]
	SendAt    Field[Time]
	StopAt    Field[Time]
	Hours     Field[HoursInput]
	Pace      Field[BroadcastPace]
	MaxFailed Field[int64]
}

// A TemplateName names a template.
type TemplateName struct{ Name, Language string }

// OnlyLater tells whether the input has only what can be changed while a broadcast runs, and
// OnlyName whether it has nothing but a name.
func (in *BroadcastInput) OnlyLater() bool {
	return !in.Channel.Set && !in.Template.Set && !in.Values.Set && !in.Audience.Set && !in.Consent.Set && !in.SkipOpen.Set && !in.SendAt.Set
}

// OnlyName tells whether the input has nothing but a name.
func (in *BroadcastInput) OnlyName() bool {
	return in.OnlyLater() && !in.AtMost.Set && !in.StopAt.Set && !in.Hours.Set && !in.Pace.Set && !in.MaxFailed.Set
}

// Check refuses an input without a name or a template, for a new broadcast.
func (in *BroadcastInput) Check() error {
	switch {
	case !in.Name.Has():
		return InvalidAt("/name", "missing; give a name of 1 to %d characters", MaxBroadcastName)
	case !in.Template.Has():
		return InvalidAt("/template", "missing; give its name and language")
	}
	return nil
}

// CheckShape refuses an input that can change no broadcast.
func (in *BroadcastInput) CheckShape(now Time) error {
	return (&Broadcast{AtMost: 1}).Edit(in, now) // an audience may go with the number that is stored
}

// Edit applies an input. It checks only what does not depend on stored data.
func (b *Broadcast) Edit(in *BroadcastInput, now Time) error {
	if in.Name.Set {
		name := strings.TrimSpace(in.Name.Value)
		if n := utf8.RuneCountInString(name); n < 1 || n > MaxBroadcastName || checkStorable(name) != nil {
			return InvalidAt("/name", "give a name of 1 to %d characters", MaxBroadcastName)
		}
		b.Name = name
	}
	if in.Channel.Set {
		b.Channel = in.Channel.Value
	}
	if in.Template.Set {
		t := in.Template.Value
		if in.Template.Null {
			return InvalidAt("/template", "missing; give its name and language")
		}
		if !templateName.MatchString(t.Name) {
			return InvalidAt("/template/name", "a template's name is 1 to 512 lower-case letters, digits or _")
		}
		if !templateLanguage.MatchString(t.Language) {
			return InvalidAt("/template/language", "a template's language is a code such as tr or en_US")
		}
		b.Template, b.Language, b.Category = t.Name, t.Language, ""
	}
	if in.Values.Set {
		if len(in.Values.Value) > maxBroadcastValues {
			return InvalidAt("/variables", "at most %d variables can be named", maxBroadcastValues)
		}
		for _, v := range in.Values.Value {
			if err := v.check(); err != nil {
				return err
			}
		}
		b.Values = slices.SortedFunc(slices.Values(in.Values.Value), func(v, w BroadcastValue) int { return strings.Compare(v.Address, w.Address) })
	}
	if err := b.editAudience(in); err != nil {
		return err
	}
	if in.Consent.Set {
		b.Consent = nil
		if in.Consent.Has() {
			c := in.Consent.Value
			if c.Confirmed == (c.Attribute != "") {
				return InvalidAt("/consent", "send confirmed: true, or the key of a boolean attribute")
			}
			if !c.Confirmed && !isWord(c.Attribute, MaxAttributeKey) {
				return InvalidAt("/consent/attribute", "no attribute can have this key: it has a lower-case letter and up to %d lower-case letters, digits or _", MaxAttributeKey-1)
			}
			b.Consent = &c
		}
	}
	if in.SkipOpen.Set {
		b.SkipOpen = nil
		if in.SkipOpen.Has() {
			b.SkipOpen = &in.SkipOpen.Value
		}
	}
	for _, t := range []struct {
		at   string
		sent Field[Time]
		into *Time
	}{{"/send_at", in.SendAt, &b.SendAt}, {"/stop_at", in.StopAt, &b.StopAt}} {
		if !t.sent.Set {
			continue
		}
		if t.sent.Value > now+Time(farthestStart.Milliseconds()) {
			return InvalidAt(t.at, "at most 366 days ahead")
		}
		*t.into = t.sent.Value
	}
	if in.Hours.Set {
		b.Hours = nil
		if in.Hours.Has() {
			hours, err := in.Hours.Value.parse()
			if err != nil {
				return err
			}
			b.Hours = hours
		}
	}
	if in.Pace.Set {
		b.Pace = nil
		if in.Pace.Has() {
			p := in.Pace.Value
			if p.People < 1 || p.People > MaxBroadcastPeople {
				return InvalidAt("/pace/people", "send a whole number from 1 to %d", MaxBroadcastPeople)
			}
			if p.Minutes < 1 || p.Minutes > MaxBroadcastMinutes {
				return InvalidAt("/pace/minutes", "send a whole number from 1 to %d", MaxBroadcastMinutes)
			}
			b.Pace = &p
		}
	}
	if in.MaxFailed.Set || b.MaxFailed == 0 {
		b.MaxFailed = UsualMaxFailed
		if in.MaxFailed.Has() {
			if n := in.MaxFailed.Value; n < 1 || n > 100 {
				return InvalidAt("/max_failed_percent", "send a whole number from 1 to 100")
			}
			b.MaxFailed = int(in.MaxFailed.Value)
		}
	}
	return nil
}

// editAudience applies what an input says of the audience, and of how many people fit.
func (b *Broadcast) editAudience(in *BroadcastInput) error {
	if in.Audience.Set {
		b.Audience = nil
		if in.Audience.Has() {
			audience := in.Audience.Value
			if err := audience.check(); err != nil {
				return err
			}
			if b.Rows > 0 {
				return InvalidAt("/audience", "the broadcast has rows: delete them first")
			}
			if b.Untidy {
				return stillCleared()
			}
			b.Audience = &audience
		}
	}
	if in.AtMost.Set {
		if n := in.AtMost.Value; in.AtMost.Has() && (n < 1 || n > MaxBroadcastPeople) {
			return InvalidAt("/at_most", "send a whole number from 1 to %d", MaxBroadcastPeople)
		}
		b.AtMost = in.AtMost.Value
	}
	if b.Audience != nil && b.AtMost == 0 {
		return InvalidAt("/at_most", "missing; say how many people this audience has at most, from 1 to %d", MaxBroadcastPeople)
	}
	return nil
}

// TakesRows returns Invalid if callers can't add rows, because the broadcast has an audience, and
// Unavailable if rows that it had are still being deleted.
func (b *Broadcast) TakesRows() error {
	switch {
	case b.Audience != nil:
		return Invalidf("the people of this broadcast are its audience: it takes no rows")
	case b.Untidy:
		return stillCleared()
	}
	return nil
}

func stillCleared() error {
	return Errorf(Unavailable, "the rows of the broadcast are still being deleted: try again")
}

// Collects tells whether people of the audience are still to be written down.
func (b *Broadcast) Collects() bool {
	return b.Audience != nil && (b.Collect == nil || !b.Collect.Done)
}

// TooMany tells whether the broadcast has more people than it may have.
func (b *Broadcast) TooMany() bool { return b.AtMost > 0 && b.Rows > b.AtMost }

// escaped makes a name a part of a JSON pointer.
var escaped = strings.NewReplacer("~", "~0", "/", "~1")

func (v *BroadcastValue) check() error {
	at := "/variables/" + escaped.Replace(v.Address)
	for _, text := range []string{v.Address, v.Value, v.From, v.Else} {
		if err := checkStorable(text); err != nil {
			return InvalidAt(at, "%v", err)
		}
		if utf8.RuneCountInString(text) > MaxBroadcastValue {
			return InvalidAt(at, "at most %d characters", MaxBroadcastValue)
		}
	}
	switch {
	case v.Address == "":
		return InvalidAt("/variables", "name each variable by its address")
	case (v.Value == "") == (v.From == ""):
		return InvalidAt(at, "send a value of 1 to %d characters, or from", MaxBroadcastValue)
	case v.Value != "" && v.Else != "":
		return InvalidAt(at+"/else", "only a variable with from has it")
	}
	return nil
}

// Changes are the names of the fields that differ from an earlier state, sorted.
func (b *Broadcast) Changes(old *Broadcast) []string {
	var f fields
	f.add("at_most", b.AtMost != old.AtMost)
	f.add("audience", !b.Audience.same(old.Audience))
	f.add("channel_id", b.Channel != old.Channel)
	f.add("consent", !same(b.Consent, old.Consent))
	f.add("ended_at", b.EndedAt != old.EndedAt)
	f.add("hours", !b.Hours.equal(old.Hours))
	f.add("max_failed_percent", b.MaxFailed != old.MaxFailed)
	f.add("name", b.Name != old.Name)
	f.add("pace", !same(b.Pace, old.Pace))
	f.add("reason", b.Reason != old.Reason)
	f.add("resumes_at", b.ResumesAt != old.ResumesAt)
	f.add("send_at", b.SendAt != old.SendAt)
	f.add("skip_open", !same(b.SkipOpen, old.SkipOpen))
	f.add("started_at", b.StartedAt != old.StartedAt)
	f.add("started_by", b.StartedBy != old.StartedBy)
	f.add("state", b.State != old.State)
	f.add("stop_at", b.StopAt != old.StopAt)
	f.add("template", b.Template != old.Template || b.Language != old.Language || b.Category != old.Category)
	f.add("variables", !slices.Equal(b.Values, old.Values))
	return f
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// ListBytes is the broadcast's size in a page.
func (b *Broadcast) ListBytes() int {
	n := 3*recordRoom + jsonBytes(b.Name) + jsonBytes(b.Template) + b.Audience.listBytes()
	for _, v := range b.Values {
		n += recordRoom + jsonBytes(v.Address) + jsonBytes(v.Value) + jsonBytes(v.From) + jsonBytes(v.Else)
	}
	if b.Hours != nil {
		n += (&Policy{Hours: b.Hours}).ListBytes()
	}
	if b.Counts != nil {
		n += 2 * recordRoom
		for _, c := range b.Counts.Failures {
			n += recordRoom + jsonBytes(c.Title)
		}
		for _, c := range b.Counts.Choices {
			n += recordRoom + jsonBytes(c.Title)
		}
	}
	return n
}

// A BroadcastIs is the detail of BroadcastInState: the state in which the request is not
// possible.
type BroadcastIs struct{ State BroadcastState }

// InState returns BroadcastInState.
func (b *Broadcast) InState() error {
	e := Errorf(BroadcastInState, "the broadcast is %s: this is not possible now", b.State)
	e.Details = BroadcastIs{b.State}
	return e
}

// NoBroadcast is the answer for an id that no broadcast of the workspace has.
func NoBroadcast() error { return NotFoundf("no broadcast has this id").Advise(ListBroadcasts) }

// Due is when the driver has to look at the broadcast. It returns false if there is nothing
// to do.
func (b *Broadcast) Due() (Time, bool) {
	switch b.State {
	case BroadcastScheduled:
		return b.SendAt, true
	case BroadcastRunning:
		return 0, true
	}
	return 0, b.Untidy
}

// Pause pauses a broadcast.
func (b *Broadcast) Pause(why BroadcastReason) {
	b.State, b.Reason, b.ResumesAt = BroadcastPaused, why, 0
}

// Stopped tells whether nobody drove the broadcast for so long that it has to be paused. now is by
// the database's clock.
func (b *Broadcast) Stopped(now Time) bool {
	return now-b.DrivenAt > Time(BroadcastStopped.Milliseconds())
}

// Begin lets a broadcast run, or wait for its time. Who starts or resumes it is by.
func (b *Broadcast) Begin(by Actor, now Time) {
	b.StartedBy, b.ResumedAt, b.Reason, b.ResumesAt = by, now, "", 0
	b.State = BroadcastRunning
	if b.SendAt > now && b.StartedAt == 0 {
		b.State = BroadcastScheduled
	} else if b.StartedAt == 0 {
		b.StartedAt = now
	}
	if b.State == BroadcastRunning && b.Collects() {
		b.Reason = WaitsForPeople
	}
}

// End ends a broadcast as done or cancelled.
func (b *Broadcast) End(as BroadcastState, now Time) {
	b.State, b.Reason, b.ResumesAt, b.EndedAt, b.Untidy = as, "", 0, now, true
}

// SkipsOpen tells whether people with an open conversation are passed over.
func (b *Broadcast) SkipsOpen() bool {
	if b.SkipOpen != nil {
		return *b.SkipOpen
	}
	return strings.EqualFold(b.Category, MarketingCategory)
}

// BroadcastShape identifies what a template says and needs. A broadcast goes on only with the
// template that it was started with.
func (t *Template) BroadcastShape() string {
	texts := []string{t.Header, t.Body, t.Category}
	for _, n := range t.Needs {
		texts = append(texts, n.Address, string(n.Kind), n.URL)
	}
	h := sha256.New()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// broadcastNeeds names what a send of the template supplies besides the texts of variables.
func (t *Template) broadcastNeeds() (list []string) {
	for _, n := range t.Needs {
		list = append(list, n.Address)
	}
	return list
}

// TitleFile returns the id of the file in the template's title that the broadcast sends; "" if
// it has none.
func (b *Broadcast) TitleFile() string {
	i := slices.IndexFunc(b.Values, func(v BroadcastValue) bool { return v.Address == MediaAddress })
	if i < 0 {
		return ""
	}
	return b.Values[i].Value
}

// Holds returns the file that the broadcast needs until its end; zero if there is none.
func (b *Broadcast) Holds() ID {
	if b.State.Ended() || b.State == BroadcastDeleted {
		return ID{}
	}
	id, _ := ParseID(b.TitleFile())
	return id
}

// Addresses lists the addresses of all that a send of the template supplies.
func (t *Template) Addresses() (list []string) {
	for _, v := range t.Variables {
		list = append(list, v.Address())
	}
	return append(list, t.broadcastNeeds()...)
}

// ReasonsAgainst returns the reasons for which the template can't be sent, as for a single send that
// supplies the same: what the broadcast names, and the links, which come from its rows if they are
// not named.
func (b *Broadcast) ReasonsAgainst(t *Template) []string {
	in := TemplateValues{Object: true}
	for _, v := range b.Values {
		in.Named = append(in.Named, NamedValue{Address: v.Address})
	}
	for _, n := range t.Needs {
		if !n.IsFile() {
			in.Named = append(in.Named, NamedValue{Address: n.Address})
		}
	}
	return t.ReasonsAgainst(in)
}

// CheckTemplate returns InvalidVariables for values of variables that the template does not
// have, and for a From that does not exist.
func (b *Broadcast) CheckTemplate(t *Template, s *Settings) error {
	var problems details[VariableProblem]
	addresses := t.Addresses()
	for _, v := range b.Values {
		message := ""
		key, attribute := strings.CutPrefix(v.From, fromAttribute)
		switch {
		case !slices.Contains(addresses, v.Address):
			message = noVariable
		case v.Address == MediaAddress && v.Value == "":
			message = "name one file for everybody, by value"
		case v.Value != "" || v.From == FromRow:
		case attribute && s.Attributes[key] != nil && !s.Attributes[key].Archived:
		case !attribute && Binding(v.From) != Free && slices.Contains(Bindings, Binding(v.From)):
		default:
			message = "nothing has this name: from is a binding, attributes.KEY, or row"
		}
		if message != "" {
			problems.add(VariableProblem{v.Address, message}, v.Address, message)
		}
	}
	named := slices.ContainsFunc(b.Values, func(v BroadcastValue) bool { return v.Address == MediaAddress })
	if slices.Contains(addresses, MediaAddress) && !named {
		message := "the file is missing; name an uploaded " + string(t.Needs[0].Kind) + " by value"
		problems.add(VariableProblem{MediaAddress, message}, MediaAddress, message)
	}
	if problems.total > 0 {
		return problems.seen(Errorf(InvalidVariables, "%d of the broadcast's variables can't be filled", problems.total))
	}
	return nil
}

// CheckConsent returns OptInRequired if it is not said how the people agreed.
func (b *Broadcast) CheckConsent(s *Settings) error {
	switch {
	case b.Consent == nil:
		e := Errorf(OptInRequired, "say how these people agreed to be written to: assert it, or name a boolean attribute of contacts")
		e.At = "/consent"
		return e
	case b.Consent.Confirmed:
		return nil
	}
	if a := s.Attributes[b.Consent.Attribute]; a == nil || a.Archived || a.Type != BooleanAttribute {
		e := Errorf(OptInRequired, "no boolean attribute has the key %s", Quote(b.Consent.Attribute))
		e.At = "/consent/attribute"
		return e
	}
	return nil
}
