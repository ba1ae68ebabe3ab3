package stored

import (
	"cmp"

	"parley/desk"

	"github.com/go-json-experiment/json"
)

// A policy is a reply policy as it is stored: JSON, because it is only read as a whole.
type policy struct {
	Assign    *desk.Assign    `json:"assign,omitzero"`
	OwnerAway desk.OwnerAway  `json:"owner_away,omitzero"` // "" if it is desk.OwnerKeeps
	Hours     *desk.Hours     `json:"hours,omitzero"`
	AutoReply *desk.AutoReply `json:"auto_reply,omitzero"`
}

// PolicyText returns the stored form of a policy.
func PolicyText(p *desk.Policy) (string, error) {
	away := p.OwnerAway
	if away == desk.OwnerKeeps {
		away = "" // as the previous release stores it
	}
	text, err := json.Marshal(policy{p.Assign, away, p.Hours, p.AutoReply}, json.Deterministic(true))
	return string(text), err
}

// Policy parses the result of PolicyText.
func Policy(channel desk.ID, text string, at desk.Time) (desk.Policy, error) {
	var p policy
	err := json.Unmarshal([]byte(text), &p)
	return desk.Policy{Channel: channel, Assign: p.Assign, OwnerAway: cmp.Or(p.OwnerAway, desk.OwnerKeeps), Hours: p.Hours, AutoReply: p.AutoReply, UpdatedAt: at}, err
}
