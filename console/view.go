package console

import (
	"parley/desk"
)

// A view is what a handler shows.
type view struct {
	Title string // of the window and, on most pages, the heading
	Data  any
	Form  *form

	Live bool // the title is renewed with the page's own parts
}

// A page is what a template gets: the view, and what surrounds it.
type page struct {
	view
	Me        *desk.Member // nil on open pages
	Admin     bool
	Team      string // the workspace's name
	Section   string // the part of the navigation that the page belongs to
	Sub       string // the part of the settings that it belongs to
	From      string // where in the feed its stream goes on
	At        string // where its parts are; "": at its own URL
	Theme     string // "", light or dark
	Keys      bool   // whether keyboard shortcuts are on
	Sound     bool   // whether the script rings when somebody writes
	Enter     bool   // whether Enter sends a reply
	Waiting   string // in how many of the member's own conversations somebody waits; "" for none
	Toast     string // what was just done
	ToastLink string // to what it was done; "" if the page shows it
	Files     *assets
}
