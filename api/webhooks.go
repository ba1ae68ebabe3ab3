package api

import (
	"errors"
	"net/http"
	"strconv"

	"parley/app/deliver"
	"parley/app/feed"
	"parley/desk"
	"parley/provider"
)

func appendWebhook(b []byte, w *feed.Webhook) []byte {
	return append(appendWebhookFields(b, w), '}')
}

// Webhook is the JSON of a webhook, with its secret unless that is empty.
func Webhook(w *feed.Webhook, secret provider.Secret) []byte {
	b := appendWebhookFields(nil, w)
	if secret != (provider.Secret{}) {
		b = desk.AppendJSONString(append(b, `,"secret":`...), secret.Reveal())
	}
	return append(b, '}')
}

func appendWebhookFields(b []byte, w *feed.Webhook) []byte {
	b = appendID(append(b, `{"id":`...), w.ID)
	b = desk.AppendJSONString(append(b, `,"url":`...), w.URL)
	b = appendArray(append(b, `,"types":`...), w.Types, desk.AppendJSONString)
	b = strconv.AppendBool(append(b, `,"enabled":`...), w.Enabled)
	b = appendText(append(b, `,"disabled_reason":`...), string(w.DisabledReason))
	b = append(b, `,"failing_since":`...)
	if w.FailingSince == 0 {
		b = append(b, "null"...)
	} else {
		b = appendTime(b, w.FailingSince)
	}
	b = desk.AppendJSONString(append(b, `,"cursor":`...), w.Cursor)
	b = appendTime(append(b, `,"created_at":`...), w.CreatedAt)
	return appendTime(append(b, `,"updated_at":`...), w.UpdatedAt)
}

// withSecret answers with a webhook and its secret, which no other answer shows.
func withSecret(c *call, status int, w *feed.Webhook, secret provider.Secret) answer {
	return answer{status, append(append(append(c.out, `{"data":`...), Webhook(w, secret)...), '}')}
}

func (s *Server) listWebhooks(c *call) (answer, error) {
	list, err := s.app.Deliver.Webhooks(c.r.Context(), c.principal)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, listOf(c.out, list, func(b []byte, w feed.Webhook) []byte { return appendWebhook(b, &w) }, "")}, nil
}

func (s *Server) getWebhook(c *call) (answer, error) {
	w, err := s.app.Deliver.Webhook(c.r.Context(), c.principal, c.id())
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, &w, appendWebhook)}, nil
}

func (s *Server) addWebhook(c *call) (answer, error) {
	if err := c.principal.MayDeliver(desk.FilterOf(nil)); err != nil {
		return answer{}, err
	}
	var secret *string
	edit, err := c.webhookEdit(&secret)
	if err != nil {
		return answer{}, err
	}
	w, made, err := s.app.Deliver.AddWebhook(c.r.Context(), c.principal, edit, secret)
	if err != nil {
		return answer{}, err
	}
	return withSecret(c, http.StatusCreated, &w, made), nil
}

// webhook returns the path's webhook. It returns NotFound, and Forbidden for a caller who
// may not read all its events, before anything else of the request is looked at.
func (c *call) webhook() (*desk.Webhook, error) {
	w := c.principal.Settings.Webhook(c.id())
	if w == nil {
		return nil, desk.NoWebhook()
	}
	return w, c.principal.MayDeliver(desk.FilterOf(w.Types))
}

func (s *Server) patchWebhook(c *call) (answer, error) {
	stored, err := c.webhook()
	if err != nil {
		return answer{}, err
	}
	edit, err := c.webhookEdit(nil)
	if err != nil {
		return answer{}, err
	}
	w, err := s.app.Deliver.EditWebhook(c.r.Context(), c.principal, stored.ID, edit)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, dataOf(c.out, &w, appendWebhook)}, nil
}

func (s *Server) deleteWebhook(c *call) (answer, error) {
	if err := s.app.Deliver.RemoveWebhook(c.r.Context(), c.principal, c.id()); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func (s *Server) rotateWebhook(c *call) (answer, error) {
	stored, err := c.webhook()
	if err != nil {
		return answer{}, err
	}
	overlap := int64(desk.DefaultOverlap)
	err = c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) (err error) {
			if name != "overlap_s" {
				return d.unknown(name, "overlap_s")
			}
			overlap, err = d.integer()
			return err
		})
	})
	if err != nil {
		return answer{}, err
	}
	w, made, err := s.app.Deliver.RotateWebhook(c.r.Context(), c.principal, stored.ID, overlap)
	if err != nil {
		return answer{}, err
	}
	return withSecret(c, http.StatusOK, &w, made), nil
}

// webhookEdit reads the body of a new webhook, or, without secret, of an edit. It returns
// Forbidden if the caller may not read the types that the body names, even if something
// else in the body is wrong.
func (c *call) webhookEdit(secret **string) (edit desk.WebhookEdit, err error) {
	known := []string{"url", "types", "enabled"}
	var types []string // the types that the webhook will have; nil if the body does not say
	if secret != nil {
		known, types = append(known, "secret"), deliver.AllTypes
	}
	var wrong error
	err = c.decode(maxBody, func(d *decoder) error {
		return d.object(func(name string) error {
			depth := d.StackDepth()
			err := func() (err error) {
				switch {
				case name == "url":
					edit.URL, err = pointer(d.text)
				case name == "types":
					types = nil
					if edit.Types, err = pointer(d.texts); err == nil {
						types = *edit.Types
					}
				case name == "enabled":
					edit.Enabled, err = pointer(d.bool)
				case name == "secret" && secret != nil:
					*secret, err = pointer(d.text)
				default:
					return d.refuse(unknownMember(name, known))
				}
				return err
			}()
			var e *desk.Error
			if err == nil || errors.As(err, new(bodyError)) || !errors.As(err, &e) {
				return err
			}
			if wrong == nil {
				wrong = e
			}
			return d.skipTo(depth)
		})
	})
	if err != nil {
		return edit, err
	}
	if types != nil {
		if err := c.principal.MayDeliver(desk.FilterOf(types)); err != nil {
			return edit, err
		}
	}
	return edit, wrong
}
