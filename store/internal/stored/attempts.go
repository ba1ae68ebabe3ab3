package stored

import "parley/desk"

// An AttemptPage is a page of attempts that is being read.
type AttemptPage struct {
	Size desk.PageSize
	List []*desk.Attempt
	Next *desk.ID // the id before which the list continues; nil: at its end
}

// Add adds an attempt, without the fields that a list does not show. It returns false if
// the page has no space for the attempt. Every later call then returns false, too.
func (p *AttemptPage) Add(a *desk.Attempt) bool {
	if p.Next != nil || !p.Size.Add(a.ListBytes()) {
		if p.Next == nil {
			p.Next = &p.List[len(p.List)-1].ID
		}
		return false
	}
	p.List = append(p.List, Listed(a))
	return true
}

// Listed returns an attempt without the fields that lists and the feed do not show.
func Listed(a *desk.Attempt) *desk.Attempt {
	if a != nil {
		a.Response, a.Plan.Profile = nil, nil
	}
	return a
}
