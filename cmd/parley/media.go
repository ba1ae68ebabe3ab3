package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"parley/app"
	"parley/desk"
)

// An age is the value of a flag: a duration, such as 365d or 720h; 0 means for ever.
type age time.Duration

func (a *age) UnmarshalText(text []byte) error {
	if err := (*expiry)(a).UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is no time: give one such as 365d or 720h, at most 36500d, or 0 for ever", text)
	}
	return nil
}

type mediaCmd struct {
	List  mediaListCmd  `cmd:"" help:"List the files of a workspace, newest first."`
	Retry mediaRetryCmd `cmd:"" help:"Fetch a file again that could not be fetched from the provider."`
}

type mediaRecord struct {
	MediaID   string  `json:"media_id"`
	Kind      string  `json:"kind"`
	MIME      *string `json:"mime_type"`
	Name      *string `json:"name"`
	Size      *int64  `json:"size"`
	SHA256    *string `json:"sha256"`
	Status    string  `json:"status"`
	Reason    *string `json:"reason"`
	ContactID *string `json:"contact_id"` // the sender; null: the file is an upload
	CreatedAt string  `json:"created_at"`
}

func recordOfMedia(m *desk.Media) mediaRecord {
	r := mediaRecord{
		MediaID: m.ID.String(), Kind: string(m.Kind), MIME: unlessEmpty(m.MIME), Name: unlessEmpty(m.Name), SHA256: unlessEmpty(hex.EncodeToString(m.SHA256)),
		Status: string(m.Status), Reason: unlessEmpty(string(m.Reason)), CreatedAt: m.CreatedAt.String(),
	}
	if m.MIME != "" {
		r.Size = &m.Size
	}
	if !m.ContactID.IsZero() {
		r.ContactID = unlessEmpty(m.ContactID.String())
	}
	return r
}

type mediaListCmd struct {
	Workspace string `help:"The workspace's id." required:"" placeholder:"ID"`
	Failed    bool   `help:"Only those that could not be fetched from the provider."`
	Limit     most   `help:"List N at most; by default ${default}." placeholder:"N" default:"1000"`
}

// Help shows examples.
func (*mediaListCmd) Help() string {
	return examples(
		`parley media list --workspace 01980000-0000-7000-8000-000000000001`,
		`parley media list --workspace 01980000-0000-7000-8000-000000000001 --failed --json`,
	)
}

// Run lists the files.
func (c *mediaListCmd) Run(ctx context.Context, s *session) error {
	return s.inWorkspace(ctx, c.Workspace, func(a *app.App, p desk.Principal) error {
		var records []mediaRecord
		for before := (desk.ID{}); c.Limit.page(len(records)) > 0; {
			page, err := a.Media.List(ctx, p, c.Failed, before, c.Limit.page(len(records)))
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, m := range page {
				records, before = append(records, recordOfMedia(m)), m.ID
			}
		}
		return answerList(s, records, []string{"MEDIA", "KIND", "TYPE", "SIZE", "STATUS", "REASON", "NAME", "CREATED"}, func(m mediaRecord) []string {
			size := "-"
			if m.Size != nil {
				size = strconv.FormatInt(*m.Size, 10)
			}
			return []string{m.MediaID, m.Kind, orDash(m.MIME), size, m.Status, orDash(m.Reason), orDash(m.Name), m.CreatedAt}
		})
	})
}

type mediaRetryCmd struct {
	Media string `arg:"" help:"The file's id."`
}

// Help shows examples.
func (*mediaRetryCmd) Help() string {
	return examples(
		`parley media retry 01980000-0000-7000-8000-000000000006`,
		`parley media retry 01980000-0000-7000-8000-000000000006 --json`,
	)
}

// Run makes the file pending. A server fetches it.
func (c *mediaRetryCmd) Run(ctx context.Context, s *session) error {
	err := s.do(ctx, func(a *app.App) error {
		p, err := a.OperatorOfMedia(ctx, idOf(c.Media))
		if err != nil {
			return err
		}
		m, err := a.Media.Retry(ctx, p, idOf(c.Media))
		if err != nil {
			return err
		}
		return s.answer(recordOfMedia(m), "The file %s will be fetched again by the next server that runs.\n", m.ID)
	})
	return s.unknown(err, "file", c.Media, "media list --workspace W")
}
