package console

import (
	"context"
	"fmt"
	"strings"

	"parley/desk"
)

// moveTo changes the state of the broadcast in the path, and shows its page. If that is
// refused, the page says why; or, if there is one, the page that asked before.
func (c *call) moveTo(done string, question func(*desk.Broadcast) confirmation, do func(context.Context, desk.Principal, desk.ID) (*desk.Broadcast, error)) error {
	id := c.id("id")
	_, err := do(c.r.Context(), c.p, id)
	if err == nil {
		return c.see(broadcastPath(id), done)
	}
	if question == nil {
		return c.notMoved(err)
	}
	b, readErr := c.s.app.Broadcasts.Get(c.r.Context(), c.p, id)
	if readErr != nil {
		return readErr
	}
	return c.confirmAgain(question(b), broadcastError(err))
}

// notMoved shows the page of the broadcast with the reason why it was left as it is.
func (c *call) notMoved(err error) error {
	v, readErr := c.broadcastView()
	if readErr != nil {
		return readErr
	}
	return c.again("broadcast", v, broadcastError(err))
}

// askOf asks before something is done with the broadcast in the path.
func (c *call) askOf(question func(*desk.Broadcast) confirmation) error {
	b, err := c.s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	return c.confirm(question(b))
}

// broadcastError describes why a broadcast can't be started or changed.
func broadcastError(err error) error {
	e := *desk.AsError(err)
	switch e.Type {
	case desk.BroadcastInState:
		if is, ok := e.Details.(desk.BroadcastIs); ok {
			e.Message = "that is not possible now: the broadcast is " + strings.ToLower(broadcastStates[is.State].Text)
		}
	case desk.OptInRequired:
		e.Message, e.At = "say first how these people agreed to be written to", ""
	case desk.BroadcastEmpty:
		e.Message = "nobody is among its people: add some, or choose others"
	case desk.InvalidVariables:
		if problems, ok := e.Details.([]desk.VariableProblem); ok && len(problems) > 0 {
			e.Message = fmt.Sprintf("%s can't be filled: %s", variableName(problems[0].Address), problems[0].Message)
		}
	case desk.Unavailable:
		e.Message = strings.TrimSuffix(e.Message, ": try again")
	}
	return &e
}

func (s *Server) pauseBroadcast(c *call) error {
	return c.moveTo("paused", nil, s.app.Broadcasts.Pause)
}

func (s *Server) unscheduleBroadcast(c *call) error {
	return c.moveTo("unscheduled", nil, s.app.Broadcasts.Unschedule)
}

// leftOf says how many people a broadcast has still to do.
func (c *call) leftOf(b *desk.Broadcast) string {
	n := c.countsOf(b)
	return peopleWords(n.ByStatus[desk.RowPending] + n.ByStatus[desk.RowSending])
}

func (c *call) cancelQuestion(b *desk.Broadcast) confirmation {
	return confirmation{
		Heading: "End " + apart(b.Name) + " now?", Button: "End it now", Action: broadcastPath(b.ID) + "/cancel", Back: broadcastPath(b.ID),
		Text: []string{
			"Nothing more is sent. Not sent to yet: " + c.leftOf(b) + ". What was sent stays sent, and messages that are on their way go on.",
			"There is no undo. To go on later, pause it instead.",
		},
	}
}

func (s *Server) askBroadcastCancel(c *call) error { return c.askOf(c.cancelQuestion) }

func (s *Server) cancelBroadcast(c *call) error {
	return c.moveTo("ended", c.cancelQuestion, s.app.Broadcasts.Cancel)
}

func (c *call) resumeQuestion(b *desk.Broadcast) confirmation {
	v := confirmation{
		Heading: "Resume " + apart(b.Name) + "?", Button: "Resume", Harmless: true, Action: broadcastPath(b.ID) + "/resume", Back: broadcastPath(b.ID),
		Text: []string{"It goes on where it stood, in your name. Not sent to yet: " + c.leftOf(b) + ". Nobody gets it twice."},
	}
	if b.State == desk.BroadcastPaused && b.Reason != desk.PausedAsked {
		v.Text = append(v.Text, "It was paused for a reason: "+c.standing(b))
	}
	return v
}

func (s *Server) askBroadcastResume(c *call) error { return c.askOf(c.resumeQuestion) }

func (s *Server) resumeBroadcast(c *call) error {
	return c.moveTo("resumed", c.resumeQuestion, s.app.Broadcasts.Resume)
}

func deletionQuestion(b *desk.Broadcast) confirmation {
	return confirmation{
		Heading: "Delete " + apart(b.Name) + "?", Button: "Delete", Action: broadcastPath(b.ID) + "/delete", Back: broadcastPath(b.ID),
		Text: []string{"The list of people and the numbers go. Messages that were sent stay in their conversations."},
	}
}

func (s *Server) askBroadcastDeletion(c *call) error { return c.askOf(deletionQuestion) }

func (s *Server) deleteBroadcast(c *call) error {
	id := c.id("id")
	err := s.app.Broadcasts.Delete(c.r.Context(), c.p, id)
	if err == nil {
		return c.see("/broadcasts", "deleted")
	}
	b, readErr := s.app.Broadcasts.Get(c.r.Context(), c.p, id)
	if readErr != nil {
		return readErr
	}
	return c.confirmAgain(deletionQuestion(b), broadcastError(err))
}

// copyBroadcast makes a draft with the settings of a broadcast, and without its people. An
// audience, which chooses them, is a setting.
func (s *Server) copyBroadcast(c *call) error {
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, c.id("id"))
	if err != nil {
		return err
	}
	made, err := s.app.Broadcasts.Create(c.r.Context(), c.p, copyOf(b, desk.TimeOf(c.now)))
	if err != nil {
		return c.notMoved(err)
	}
	done := "copied"
	if made.Audience != nil {
		done = "copied-all"
	}
	return c.see(broadcastPath(made.ID), done)
}

// copyOf returns the input that makes a broadcast like b. Times that have passed are left
// out.
func copyOf(b *desk.Broadcast, now desk.Time) *desk.BroadcastInput {
	name := []rune(b.Name + " (copy)")
	in := &desk.BroadcastInput{
		Name:     desk.Field[string]{Set: true, Value: string(name[:min(len(name), desk.MaxBroadcastName)])},
		Template: desk.Field[desk.TemplateName]{Set: true, Value: desk.TemplateName{Name: b.Template, Language: b.Language}},
		Values:   desk.Field[[]desk.BroadcastValue]{Set: true, Value: b.Values},
	}
	if !b.Channel.IsZero() {
		in.Channel = desk.Field[desk.ID]{Set: true, Value: b.Channel}
	}
	if b.Consent != nil {
		in.Consent = desk.Field[desk.Consent]{Set: true, Value: *b.Consent}
	}
	if b.Audience != nil {
		in.Audience = desk.Field[desk.Audience]{Set: true, Value: *b.Audience}
	}
	if b.AtMost != 0 {
		in.AtMost = desk.Field[int64]{Set: true, Value: b.AtMost}
	}
	if b.SkipOpen != nil {
		in.SkipOpen = desk.Field[bool]{Set: true, Value: *b.SkipOpen}
	}
	if b.SendAt > now {
		in.SendAt = desk.Field[desk.Time]{Set: true, Value: b.SendAt}
	}
	if b.StopAt > now {
		in.StopAt = desk.Field[desk.Time]{Set: true, Value: b.StopAt}
	}
	if b.Hours != nil {
		in.Hours = desk.Field[desk.HoursInput]{Set: true, Value: *inputOf(&desk.Policy{Hours: b.Hours}).Hours}
	}
	if b.Pace != nil {
		in.Pace = desk.Field[desk.BroadcastPace]{Set: true, Value: *b.Pace}
	}
	in.MaxFailed = desk.Field[int64]{Set: true, Value: int64(b.MaxFailed)}
	return in
}

// releaseQuestion asks before the messages in doubt of a broadcast are settled together.
func (c *call) releaseQuestion(b *desk.Broadcast) confirmation {
	n := several(int(c.countsOf(b).ByStatus[desk.RowInDoubt]), "message")
	v := confirmation{
		Heading: "Settle " + n + " as not sent?", Button: "They were not sent", Back: broadcastPath(b.ID),
		Text: []string{"These people count as not sent to. The broadcast does not send to them again."},
	}
	outcome := "not-sent"
	if c.query("outcome") == "sent" {
		outcome = "sent"
		v.Heading, v.Button = "Settle "+n+" as sent?", "They arrived"
		v.Text = []string{"The messages are put into their conversations. Nothing is sent."}
	}
	v.Action = broadcastPath(b.ID) + "/release?outcome=" + outcome
	v.Text = append(v.Text, "Look some of them up at the provider first. Up to "+count(desk.MaxReleased)+" are settled at a time, the oldest first.")
	return v
}

func (s *Server) askBroadcastRelease(c *call) error { return c.askOf(c.releaseQuestion) }

// releaseBroadcast settles messages in doubt. While some are left, it asks again.
func (s *Server) releaseBroadcast(c *call) error {
	id, outcome := c.id("id"), c.query("outcome")
	b, err := s.app.Broadcasts.Get(c.r.Context(), c.p, id)
	if err != nil {
		return err
	}
	if outcome != "sent" && outcome != "not-sent" {
		return c.confirmAgain(c.releaseQuestion(b), desk.Invalidf("choose whether the messages arrived"))
	}
	r, err := s.app.Broadcasts.Release(c.r.Context(), c.p, id, outcome == "sent")
	if err != nil {
		return err
	}
	switch {
	case r.Left == 0:
		return c.see(broadcastPath(id), "settled")
	case r.Released > 0:
		return c.see(broadcastPath(id)+"/release?outcome="+outcome, "settled")
	}
	return c.confirmAgain(c.releaseQuestion(b), desk.Errorf(desk.SendInProgress, "none was settled, as some may still be under way: wait half a minute"))
}
