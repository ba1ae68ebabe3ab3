package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"parley/app"
	"parley/app/conflicts"
	"parley/desk"
	"parley/web"
)

func (s *Server) exportContact(c *call) (answer, error) {
	c.stream = func() error { return Export(c.w, c.r, s.app, c.principal, c.id()) }
	return answer{}, nil
}

// Export answers with all that is stored about a contact, as a stream (contract-data §7). Its
// caller is a key, or an admin in the console. Before the stream begins, it returns Forbidden,
// NotFound and RateLimited; later errors cut the stream off.
func Export(w *web.Response, r *http.Request, a *app.App, p desk.Principal, id desk.ID) error {
	if err := p.Allow(desk.ConversationsRead); err != nil {
		return err
	}
	e := &exporter{app: a, w: w, ctx: r.Context(), p: p}
	var err error
	if e.contact, err = a.Exports.Still(e.ctx, p, id); err != nil {
		return err
	}
	end, err := a.Exports.Begin(p.Workspace())
	if err != nil {
		return err
	}
	defer end()
	if err := w.Stream(web.JSON); err != nil || r.Method == http.MethodHead {
		return nil // the client has left
	}
	e.b = append(e.b, `{"data":{`...)
	for n, member := range e.members() {
		if n > 0 {
			e.b = append(e.b, ',')
		}
		e.b = append(desk.AppendJSONString(e.b, member.name), ':')
		if err = member.write(); err != nil {
			break
		}
	}
	if err == nil {
		e.b = append(e.b, `}}`...)
		err = e.send()
	}
	if errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// errLeft means that the connection has ended.
var errLeft = errors.New("the client has left")

// An exporter writes the export of a contact, part by part. A page has reserved its memory, and
// is sent before the next one is read.
type exporter struct {
	app     *app.App
	w       *web.Response
	ctx     context.Context
	p       desk.Principal
	contact *desk.Contact
	b       []byte // not sent yet
	page    bool   // b has a part of a page
}

// A member of the export, and how it is written.
type member struct {
	name  string
	write func() error
}

// members lists what is stored about a contact, in the order of the answer.
func (e *exporter) members() []member {
	settings := e.p.Settings
	return []member{
		{"contact", e.whole(func() { e.b = appendContact(e.b, e.contact) })},
		{"identities", e.whole(func() { e.b = appendIdentities(e.b, e.contact.Identities()) })},
		{"conversations", e.conversations},
		{"media", func() error {
			sent := map[desk.ID]bool{} // uploads: they may be in several messages
			return e.ofMessages(func(m *desk.Message) bool {
				f := m.Attachment
				return f != nil && (m.Direction == desk.Inbound || !sent[f.ID])
			}, func(b []byte, m *desk.Message) []byte {
				if m.Direction != desk.Inbound && len(sent) < mostSent {
					sent[m.Attachment.ID] = true
				}
				return appendMedia(b, m.Attachment)
			})
		}},
		{"opt_ins", func() error {
			return e.ofMessages(func(m *desk.Message) bool { return m.OptIn != nil }, func(b []byte, m *desk.Message) []byte {
				b = appendID(append(b, `{"message_id":`...), m.ID)
				return append(append(b, ','), appendOptIn(nil, m.OptIn, settings)[1:]...)
			})
		}},
		{"opt_outs", func() error {
			list, err := e.app.Exports.OptOutsOf(e.ctx, e.p, e.contact)
			if err != nil {
				return err
			}
			return e.array(func(add func(func([]byte) []byte) error) error {
				for _, o := range list {
					if err := add(func(b []byte) []byte {
						b = desk.AppendJSONString(append(b, `{"phone":`...), "+"+o.Number)
						return append(appendTime(append(b, `,"since":`...), o.Since), '}')
					}); err != nil {
						return err
					}
				}
				return nil
			})
		}},
		{"attempts", func() error {
			return e.array(func(add func(func([]byte) []byte) error) error {
				return e.app.Exports.Attempts(e.ctx, e.p, e.contact, func(list []*desk.Attempt) error {
					for _, at := range list {
						if err := add(func(b []byte) []byte { return appendSendAttempt(b, at, settings) }); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}},
		{"broadcasts", func() error {
			return e.array(func(add func(func([]byte) []byte) error) error {
				return e.app.Exports.Rows(e.ctx, e.p, e.contact, func(list []*desk.BroadcastRow) error {
					for _, r := range list {
						if err := add(func(b []byte) []byte {
							b = appendRow(b, *r)
							return append(appendID(append(b[:len(b)-1], `,"broadcast_id":`...), r.Broadcast), '}')
						}); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}},
		{"history", func() error {
			return pages(e, func(cursor string) ([]desk.FeedEvent, string, error) {
				return e.app.Search.History(e.ctx, e.p, e.contact.ID, cursor, desk.MaxLimit)
			}, func(b []byte, ev desk.FeedEvent) []byte { return appendHistory(b, &ev, settings) })
		}},
		{"merges", func() error {
			return pages(e, func(cursor string) ([]*desk.Merge, string, error) {
				return e.app.Merges.Merges(e.ctx, e.p, e.contact.ID, cursor, fewAtOnce)
			}, func(b []byte, m *desk.Merge) []byte { return appendMerge(b, m, settings) })
		}},
		{"conflicts", func() error {
			return e.array(func(add func(func([]byte) []byte) error) error {
				after, more := desk.ID{}, true
				for more {
					var list []*conflicts.Named
					var err error
					if list, more, err = e.app.Conflicts.Of(e.ctx, e.p, e.contact.ID, after, fewAtOnce); err != nil {
						return err
					}
					for _, c := range list {
						after = c.ID
						if err := add(func(b []byte) []byte { return appendConflict(b, c.Conflict, c.Names, settings) }); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}},
		{"responses", func() error {
			return e.array(func(add func(func([]byte) []byte) error) error {
				return e.app.Exports.Responses(e.ctx, e.p, e.contact, func(list []desk.EventResponse) error {
					for _, r := range list {
						if err := add(func(b []byte) []byte {
							b = appendID(append(b, `{"delivery_id":`...), r.Delivery)
							b = appendTime(append(b, `,"at":`...), r.At)
							return append(desk.AppendJSONString(append(b, `,"response":`...), r.Response), '}')
						}); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}},
		{"callbacks", func() error {
			return e.array(func(add func(func([]byte) []byte) error) error {
				return e.app.Exports.Callbacks(e.ctx, e.p, e.contact, func(list []desk.HeldCallback) error {
					for _, h := range list {
						if err := add(func(b []byte) []byte {
							b = appendTime(append(b, `{"received_at":`...), h.ReceivedAt)
							b = appendID(append(b, `,"channel_id":`...), h.Channel)
							return append(strconv.AppendInt(append(b, `,"bytes":`...), int64(h.Bytes), 10), '}')
						}); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}},
	}
}

// fewAtOnce is how many records are read in one step that may be large.
const fewAtOnce = 16

// mostSent is how many uploads of a contact are remembered, so that a file which was sent
// several times is listed once.
const mostSent = 10_000

// conversations writes the conversations, each with its state, its messages and its notes.
func (e *exporter) conversations() error {
	first := true
	e.b = append(e.b, '[')
	err := e.eachConversation(func(v *desk.Conversation) error {
		state, err := e.app.State(e.ctx, e.p, v.ID)
		if err != nil {
			return err
		}
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		e.b = appendState(append(appendConversationFields(e.b, v), `,"state":`...), state)
		e.b = append(e.b, `,"messages":`...)
		if err := pages(e, func(cursor string) ([]*desk.Message, string, error) {
			return e.app.Messages(e.ctx, e.p, v.ID, cursor, desk.MaxLimit)
		}, messagesOf(e.p.Settings)); err != nil {
			return err
		}
		e.b = append(e.b, `,"notes":`...)
		if err := pages(e, func(cursor string) ([]*desk.Note, string, error) {
			return e.app.Notes(e.ctx, e.p, v.ID, cursor, desk.MaxLimit)
		}, appendNote); err != nil {
			return err
		}
		e.b = append(e.b, '}')
		return nil
	})
	e.b = append(e.b, ']')
	return err
}

func (e *exporter) eachConversation(do func(*desk.Conversation) error) error {
	for cursor, more := "", true; more; more = cursor != "" {
		list, next, err := e.app.ContactConversations(e.ctx, e.p, e.contact.ID, "", cursor, desk.DefaultLimit)
		if err != nil {
			return err
		}
		for _, v := range list {
			if err := do(v); err != nil {
				return err
			}
		}
		cursor = next
	}
	return nil
}

// ofMessages writes an array with an item for each message that has one.
func (e *exporter) ofMessages(has func(*desk.Message) bool, one func([]byte, *desk.Message) []byte) error {
	return e.array(func(add func(func([]byte) []byte) error) error {
		return e.eachConversation(func(v *desk.Conversation) error {
			for cursor, more := "", true; more; more = cursor != "" {
				list, next, err := read(e, func() ([]*desk.Message, string, error) {
					return e.app.Messages(e.ctx, e.p, v.ID, cursor, desk.MaxLimit)
				})
				if err != nil {
					return err
				}
				for _, m := range list {
					if !has(m) {
						continue
					}
					if err := add(func(b []byte) []byte { return one(b, m) }); err != nil {
						return err
					}
				}
				cursor = next
			}
			return nil
		})
	})
}

// whole returns a function that writes a member which needs no read.
func (e *exporter) whole(write func()) func() error {
	return func() error { write(); return e.sendMuch() }
}

// array writes an array. fill calls add for each item.
func (e *exporter) array(fill func(add func(func([]byte) []byte) error) error) error {
	// What a list before this one has left is no part of a page any more.
	if e.page = false; len(e.b) >= partBytes {
		if err := e.send(); err != nil {
			return err
		}
	}
	first := true
	e.b = append(e.b, '[')
	err := fill(func(one func([]byte) []byte) error {
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		e.b = one(e.b)
		return e.sendMuch()
	})
	e.b = append(e.b, ']')
	return err
}

// pages writes an array with the records of a list, page by page.
func pages[T any](e *exporter, next func(cursor string) ([]T, string, error), one func([]byte, T) []byte) error {
	return e.array(func(add func(func([]byte) []byte) error) error {
		for cursor, more := "", true; more; more = cursor != "" {
			list, after, err := read(e, func() ([]T, string, error) { return next(cursor) })
			if err != nil {
				return err
			}
			for _, v := range list {
				if err := add(func(b []byte) []byte { return one(b, v) }); err != nil {
					return err
				}
			}
			cursor = after
		}
		return nil
	})
}

// read reads a page if the export may go on.
func read[T any](e *exporter, page func() ([]T, string, error)) ([]T, string, error) {
	if _, err := e.app.Exports.Still(e.ctx, e.p, e.contact.ID); err != nil {
		return nil, "", err
	}
	if len(e.b) >= partBytes {
		if err := e.send(); err != nil {
			return nil, "", err
		}
	}
	if err := e.w.Reserve(readBytes, e.p.Workspace()); err != nil {
		return nil, "", err
	}
	e.page = true
	return page()
}

// readBytes is the memory for a page.
const readBytes = desk.MaxPage + web.Free

// partBytes is how much is collected before it is sent.
const partBytes = 64 << 10

// sendMuch sends what is written, if that is much and no part of a page.
func (e *exporter) sendMuch() error {
	if e.page || len(e.b) < partBytes {
		return nil
	}
	return e.send()
}

// send sends what is written. While the client does not read, the export ends as soon as the
// contact is gone.
func (e *exporter) send() error {
	err := e.w.Part(e.b, func() bool {
		_, err := e.app.Exports.Still(e.ctx, e.p, e.contact.ID)
		return err == nil
	})
	if e.b, e.page = e.b[:0], false; err != nil {
		return errLeft
	}
	return nil
}
