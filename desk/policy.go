package desk

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"unicode/utf8"
)

// A Policy says what happens to unassigned conversations: it is the reply policy of a
// workspace or of one of its channels. A channel's policy replaces the workspace's as a
// whole (contract-talk §5). Parts that are nil are off.
type Policy struct {
	Channel   ID // the channel of the policy; zero: the workspace's policy
	Assign    *Assign
	OwnerAway OwnerAway
	Hours     *Hours // nil: always open
	AutoReply *AutoReply
	UpdatedAt Time
}

// An Assign says to which members conversations are assigned.
type Assign struct {
	Mode    AssignMode `json:"mode"`
	Members []ID       `json:"members"`
	MaxOpen int        `json:"max_open"` // 0: no limit
}

// An AssignMode says how one of several members is chosen.
type AssignMode string

// The modes.
const (
	AssignNone       AssignMode = "none"
	AssignRoundRobin AssignMode = "round_robin"
	AssignLeastOpen  AssignMode = "least_open"
)

// An OwnerAway says who gets a new conversation whose contact's owner is away.
type OwnerAway string

// The choices.
const (
	OwnerKeeps OwnerAway = "keep" // the owner gets it
	OwnerPool  OwnerAway = "pool" // the conversation is assigned as if the contact had no owner
)

// An AutoReply has the texts that are sent automatically; "" if no text is sent.
type AutoReply struct {
	Away       string `json:"away"`        // sent outside of the hours
	Queued     string `json:"queued"`      // sent within the hours, if no member is eligible
	EveryHours int    `json:"every_hours"` // a person gets at most one text in so many hours
	WhenHeld   bool   `json:"when_held"`   // send Away also if a member holds the conversation
}

// Limits of a policy (contract-talk §5).
const (
	maxPolicyMembers  = 200
	MaxOpenEach       = 1000 // the greatest max_open
	MaxAutoReply      = 1024 // characters
	MaxEveryHours     = 168
	defaultEveryHours = 12
)

// A PolicyInput is a policy as it was sent. A nil part is off.
type PolicyInput struct {
	Assign    *AssignInput
	OwnerAway *string
	Hours     *HoursInput
	AutoReply *AutoReplyInput
}

// An AssignInput is Assign as it was sent.
type AssignInput struct {
	Mode    *string
	Members []Reference
	MaxOpen *int64
}

// An AutoReplyInput is AutoReply as it was sent.
type AutoReplyInput struct {
	Away, Queued *string
	EveryHours   *int64
	WhenHeld     bool
}

// Check returns InvalidRequest for a policy that no workspace could store. It does not look
// up members.
func (in *PolicyInput) Check() error {
	_, err := in.parse(nil, AssignNone)
	return err
}

// Policy returns the input as a policy of the workspace or of one of its channels. It
// returns InvalidRequest, also for a member who does not exist. It takes an empty list of members with the
// mode in force, if that has no members left: they were all removed, which must not keep the other parts of
// the policy from being stored.
func (in *PolicyInput) Policy(s *Settings, channel ID) (Policy, error) {
	emptied := AssignNone
	if old := s.Policy(channel); old != nil && old.Assign != nil && len(old.Assign.Members) == 0 {
		emptied = old.Assign.Mode
	}
	p, err := in.parse(func(ref Reference) (ID, bool) {
		m := s.ResolveMember(ref)
		if m == nil {
			return ID{}, false
		}
		return m.ID, true
	}, emptied)
	p.Channel = channel
	return p, err
}

// parse returns the input as a policy. The function member looks up a member; if it is nil, members are
// not checked. emptied is the mode, other than none, that needs no members.
func (in *PolicyInput) parse(member func(Reference) (ID, bool), emptied AssignMode) (p Policy, err error) {
	if in.Assign != nil {
		if p.Assign, err = in.Assign.parse(member, emptied); err != nil {
			return p, err
		}
	}
	p.OwnerAway = OwnerKeeps
	if in.OwnerAway != nil {
		switch p.OwnerAway = OwnerAway(*in.OwnerAway); p.OwnerAway {
		case OwnerKeeps, OwnerPool:
		default:
			return p, InvalidAt("/owner_away", "send keep or pool")
		}
	}
	if in.Hours != nil {
		if p.Hours, err = in.Hours.parse(); err != nil {
			return p, err
		}
	}
	if in.AutoReply != nil {
		p.AutoReply, err = in.AutoReply.parse()
	}
	return p, err
}

func (in *AssignInput) parse(member func(Reference) (ID, bool), emptied AssignMode) (*Assign, error) {
	a := &Assign{Members: make([]ID, 0, len(in.Members))}
	if in.Mode != nil {
		a.Mode = AssignMode(*in.Mode)
	}
	switch a.Mode {
	case AssignNone, AssignRoundRobin, AssignLeastOpen:
	default:
		return nil, InvalidAt("/assign/mode", "send none, round_robin or least_open")
	}
	if n := len(in.Members); n > maxPolicyMembers || n == 0 && a.Mode != AssignNone && a.Mode != emptied {
		return nil, InvalidAt("/assign/members", "name 1 to %d members", maxPolicyMembers)
	}
	if n := in.MaxOpen; n != nil {
		if *n < 1 || *n > MaxOpenEach {
			return nil, InvalidAt("/assign/max_open", "send a whole number from 1 to %d, or null", MaxOpenEach)
		}
		a.MaxOpen = int(*n)
	}
	if member == nil {
		return a, nil
	}
	for i, ref := range in.Members {
		at := fmt.Sprintf("/assign/members/%d", i)
		id, ok := member(ref)
		if !ok {
			return nil, InvalidAt(at, "no member of this workspace has this id or e-mail").Advise(ListMembers)
		}
		if slices.Contains(a.Members, id) {
			return nil, InvalidAt(at, "this member is there twice")
		}
		a.Members = append(a.Members, id)
	}
	return a, nil
}

func (in *AutoReplyInput) parse() (*AutoReply, error) {
	r := &AutoReply{EveryHours: defaultEveryHours, WhenHeld: in.WhenHeld}
	for _, t := range []struct {
		at   string
		sent *string
		text *string
	}{{"/auto_reply/away", in.Away, &r.Away}, {"/auto_reply/queued", in.Queued, &r.Queued}} {
		if t.sent == nil {
			continue
		}
		if n := utf8.RuneCountInString(*t.sent); n > MaxAutoReply || Blank(*t.sent) {
			return nil, InvalidAt(t.at, "give a text of 1 to %d characters, or null for none", MaxAutoReply)
		}
		*t.text = *t.sent
	}
	if n := in.EveryHours; n != nil {
		if *n < 1 || *n > MaxEveryHours {
			return nil, InvalidAt("/auto_reply/every_hours", "send a whole number from 1 to %d", MaxEveryHours)
		}
		r.EveryHours = int(*n)
	}
	return r, nil
}

// changes are the names of the fields in which two policies in force differ. A nil policy
// means that none is in force.
func (p *Policy) changes(old *Policy) []string {
	var none Policy
	if p == nil {
		p = &none
	}
	if old == nil {
		old = &none
	}
	var f fields
	f.add("assign", !p.Assign.equal(old.Assign))
	f.add("auto_reply", (p.AutoReply == nil) != (old.AutoReply == nil) || p.AutoReply != nil && *p.AutoReply != *old.AutoReply)
	f.add("channel_id", p.Channel != old.Channel)
	f.add("hours", !p.Hours.equal(old.Hours))
	f.add("owner_away", p.OwnerAway != old.OwnerAway)
	return f
}

// Same tells whether two policies in force have the same effect. A policy in which
// everything is off has the same effect as nil.
func (p *Policy) Same(q *Policy) bool {
	if q == nil {
		q = &Policy{OwnerAway: OwnerKeeps}
	}
	return p.changes(q) == nil
}

func (a *Assign) equal(b *Assign) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.MaxOpen == b.MaxOpen && slices.Equal(a.Members, b.Members)
}

func (h *Hours) equal(b *Hours) bool {
	if h == nil || b == nil {
		return h == b
	}
	return h.TimeZone == b.TimeZone && maps.EqualFunc(h.Week, b.Week, slices.Equal) &&
		slices.EqualFunc(h.Exceptions, b.Exceptions, func(a, b Exception) bool { return a.Date == b.Date && slices.Equal(a.Open, b.Open) })
}

// without returns the policy without a member, or nil if the policy does not name the member.
func (p *Policy) without(member ID) *Policy {
	if p.Assign == nil || !slices.Contains(p.Assign.Members, member) {
		return nil
	}
	less, assign := *p, *p.Assign
	assign.Members = slices.DeleteFunc(slices.Clone(assign.Members), func(id ID) bool { return id == member })
	less.Assign = &assign
	return &less
}

// policiesWithout returns the policies that name a member, each without the member, sorted
// by channel.
func (s *Settings) policiesWithout(member ID) (list []*Policy) {
	for _, p := range s.policies {
		if less := p.without(member); less != nil {
			list = append(list, less)
		}
	}
	slices.SortFunc(list, func(a, b *Policy) int { return bytes.Compare(a.Channel[:], b.Channel[:]) })
	return list
}

// ListBytes is the policy's size in a page.
func (p *Policy) ListBytes() int {
	n := recordRoom
	if p.Assign != nil {
		n += 40 * len(p.Assign.Members)
	}
	if h := p.Hours; h != nil {
		const span = len(`["00:00","24:00"],`)
		n += jsonBytes(h.TimeZone) + len(Weekdays)*(len(`"mon":[],`)+maxSpans*span) + len(h.Exceptions)*(len(`{"date":"2026-12-31","open":[]},`)+maxSpans*span)
	}
	if r := p.AutoReply; r != nil {
		n += jsonBytes(r.Away) + jsonBytes(r.Queued)
	}
	return n
}

// WithPolicies adds the policies to settings that are not shared yet.
func (s *Settings) WithPolicies(list []Policy) *Settings {
	s.policies = make(map[ID]*Policy, len(list))
	for i := range list {
		s.policies[list[i].Channel] = &list[i]
	}
	return s
}

// Policy is the policy in force on a channel, or, with the zero id, the workspace's. It
// is nil if there is none.
func (s *Settings) Policy(channel ID) *Policy {
	if p := s.policies[channel]; p != nil {
		return p
	}
	return s.policies[ID{}]
}

// Policies are the policies of the workspace and of its channels, in any order.
func (s *Settings) Policies() iter.Seq[*Policy] { return maps.Values(s.policies) }

// OwnPolicy is the channel's own policy, or nil. With the zero id, it is the workspace's
// policy.
func (s *Settings) OwnPolicy(channel ID) *Policy { return s.policies[channel] }

// Assigning returns the channels whose policy assigns conversations now: the time is within
// the policy's hours, and a listed member is available. opening is the next time when the
// hours of another channel begin.
func (s *Settings) Assigning(now Time) (channels []ID, opening Time) {
	opening = math.MaxInt64
	for _, c := range s.Channels() {
		p := s.Policy(c.ID)
		if p == nil || len(p.Assign.Here(s)) == 0 {
			continue
		}
		if p.Hours.Open(now) {
			channels = append(channels, c.ID)
		} else if at, changes := p.Hours.Until(now); changes {
			opening = min(opening, at)
		}
	}
	return channels, opening
}
