package stored

import "parley/desk"

// An AttemptPage is a page of attempts while it is read.
type AttemptPage struct {
	Size desk.PageSize
	List []*desk.Attempt
	Next *desk.ID // before which the list continues; nil: at its end
}

// Add adds an attempt without what a list does not show. It returns false for the first one
// that the page has no space for, and for those after it.
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

// Listed is an attempt without what lists and the feed do not show.
func Listed(a *desk.Attempt) *desk.Attempt {
	if a != nil {
		a.Response, a.Plan.Profile = nil, nil
	}
	return a
}
