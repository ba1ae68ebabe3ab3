package console

import (
	"net/http"

	"parley/app"
	"parley/desk"
)

// seen returns the newest message and the assignee that the member saw when the form was
// sent.
func (c *call) seen() *app.Seen {
	message, _ := desk.ParseID(c.form.text("seen_message"))
	assignee, _ := desk.ParseID(c.form.text("seen_assignee"))
	return &app.Seen{Message: message, Assignee: assignee, Status: desk.ConversationStatus(c.form.text("seen_status"))}
}

func (s *Server) assign(c *call) error {
	id, to := c.id("id"), c.form.text("to")
	var err error
	switch to {
	case "":
		err = desk.Invalidf("choose who gets it")
	case thePool:
		_, err = s.app.Unassign(c.r.Context(), c.p, id, c.seen())
	default:
		_, err = s.app.Assign(c.r.Context(), c.p, id, to, c.seen())
	}
	if desk.IsType(err, desk.Changed) {
		return c.changed(func(t *thread) {
			t.News.Action, t.News.Button = "/inbox/"+id.String()+"/assign"+t.Query, "Assign anyway"
			if to == thePool {
				t.News.Button = "Give it back anyway"
			}
			if to == c.p.Actor.ID.String() {
				t.News.Button = "Take it anyway"
				if t.Holder != "" && !t.Mine {
					t.News.Button = "Take over from " + apart(t.Holder)
				}
			}
			t.News.Fields = append(t.News.Fields, hiddenField{"to", to})
		})
	}
	if err != nil {
		return c.refused(err)
	}
	done := "assigned"
	switch to {
	case thePool:
		done = "given-back"
	case c.p.Actor.ID.String():
		done = "taken"
	}
	return c.backTo(id, done)
}

// thePool is the value of the form that gives a conversation back to the pool.
const thePool = "pool"

func (s *Server) setStatus(c *call) error {
	id := c.id("id")
	status, err := desk.ParseConversationStatus(c.form.text("status"))
	if err == nil {
		_, err = s.app.SetStatus(c.r.Context(), c.p, id, status, c.seen())
	}
	if desk.IsType(err, desk.Changed) {
		return c.changed(func(t *thread) {
			t.News.Action, t.News.Button = "/inbox/"+id.String()+"/status"+t.Query, statusWords[status].anyway
			t.News.Fields = append(t.News.Fields, hiddenField{"status", string(status)}, hiddenField{"next", c.form.text("next")})
		})
	}
	if desk.IsType(err, desk.ConversationOpen) { // the message of app has an id
		err = desk.Errorf(desk.ConversationOpen, "this person has another open conversation on this channel: close that one first")
	}
	if err != nil {
		return c.refused(err)
	}
	if status != desk.StatusClosed {
		return c.backTo(id, statusWords[status].done)
	}
	return c.goOn(id, statusWords[status].done)
}

// goOn shows the next conversation after the member has closed one.
func (c *call) goOn(id desk.ID, done string) error {
	path := "/inbox"
	if next, ok := desk.ParseID(c.form.text("next")); ok {
		path += "/" + next.String()
	}
	return c.see(path+with(c.listQuery(), "of", id.String()), done)
}

// backTo shows the conversation again, in the same view.
func (c *call) backTo(id desk.ID, done string) error {
	return c.see("/inbox/"+id.String()+c.listQuery(), done)
}

// changed shows the member what others have changed since the page was opened, and asks
// for confirmation. Nothing has been stored yet.
func (c *call) changed(ask func(*thread)) error {
	saw := c.seen()
	t, err := c.readThread(c.id("id"))
	if err != nil {
		return err
	}
	t.News = &news{Heading: "Nothing was done, because something changed meanwhile"}
	if holder, _ := desk.ParseID(t.SeenAssignee); holder != saw.Assignee {
		t.News.Heading = "Nothing was done: " + apart(t.Holder) + " holds it now"
		switch t.Holder {
		case "you":
			t.News.Heading = "Nothing was done: it is yours now"
		case "":
			t.News.Heading = "Nothing was done: nobody holds it any more"
		}
	} else if saw.Status != "" && t.Status != saw.Status {
		t.News.Heading = "Nothing was done: it is " + string(t.Status) + " now"
	} else if t.SeenMessage == saw.Message.String() {
		t.News.Heading = "Nothing was done: somebody else is sending an answer now"
	} else if t.SeenMessage != "" {
		t.News.Heading, t.News.Text = "Nothing was done: "+apart(t.Person.Name)+" wrote meanwhile", t.Newest.Text
		if t.Newest.Ours {
			t.News.Heading = "Nothing was done: a message was sent meanwhile"
		}
	}
	t.News.Fields = []hiddenField{{"seen_message", t.SeenMessage}, {"seen_assignee", t.SeenAssignee}, {"seen_status", string(t.Status)}}
	ask(t)
	v := t.view()
	v.Form = &form{}
	return c.render(http.StatusConflict, "conversation", v)
}

// refused shows the conversation with the reason why an action was refused.
func (c *call) refused(err error) error {
	if alone(err) {
		return err
	}
	t, readErr := c.readThread(c.id("id"))
	if readErr != nil {
		return readErr
	}
	return c.again("conversation", t.view(), err)
}
