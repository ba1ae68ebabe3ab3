package console

import (
	"parley/desk"
)

// A view is the result of a handler.
type view struct {
	Title string // of the window and, on most pages, the heading
	Data  any
	Form  *form

	Live    bool   // the title changes with a part of the page
	In      string // the section of the navigation; "": as the URL says
	Refresh bool   // without the script, the browser loads the page again and again
}

// A page is the data of a template: the view, and the data of the layout.
type page struct {
	view
	Me        *desk.Member // nil on open pages
	Admin     bool
	Team      string // the workspace's name
	Section   string // the section of the navigation
	Sub       string // the page within the settings
	From      string // the position in the feed at which the stream of the page begins
	At        string // the URL of its parts; "": its own URL
	Theme     string // "", light or dark
	Keys      bool   // whether keyboard shortcuts are on
	Sound     bool   // whether the script plays a sound for new messages
	Enter     bool   // whether Enter sends a reply
	Waiting   string // the number of the member's conversations in which a customer waits; "" for none
	Toast     string // the result of the last action
	ToastLink string // the record of the last action; "" if the page shows it
	Files     *assets
}
