package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/desk"
	"parley/store/internal/stored"

	"github.com/jackc/pgx/v5"
)

// claimPage is how many contacts are read in one step while claims are rebuilt.
const claimPage = 200

const (
	contactsForClaims = `SELECT workspace_id, id, external_id, email, phone, further FROM contacts
	WHERE (workspace_id, id) > ($1, $2) ORDER BY workspace_id, id LIMIT $3`
	gatherClaims = `INSERT INTO claims (workspace_id, kind, value, share, contact_id)
	SELECT workspace_id, kind, value, row_number() OVER (PARTITION BY workspace_id, kind, value ORDER BY contact_id) - 1, contact_id FROM made_claims`
	sharedQuery = `SELECT c.kind, c.value, c.contact_id
	FROM (SELECT DISTINCT kind, value FROM claims WHERE workspace_id = $1 AND share > 0) s
	CROSS JOIN LATERAL (SELECT * FROM claims WHERE workspace_id = $1 AND kind = s.kind AND value = s.value OFFSET 0) c ORDER BY 1, 2, 3`
)

// makeClaims rebuilds the claims in one transaction if they were made by older rules. An
// interrupted run stores nothing, and the next run begins again. Contacts are read in
// pages, and the database sorts, so the memory does not depend on their number. The
// caller holds the lock of migrations.
func makeClaims(ctx context.Context, c *pgx.Conn, rules string, on cluster, log *slog.Logger) error {
	var known string
	if err := c.QueryRow(ctx, `SELECT coalesce((SELECT rules FROM claim_rules), '')`).Scan(&known); err != nil {
		return err
	}
	if rebuild, err := stored.Rebuild(rules, known); err != nil || !rebuild {
		return err
	}
	if on.citus && !on.coordinator {
		return errWorker
	}
	if err := fence(ctx, c, rules, log); err != nil {
		return fmt.Errorf("stop the writes of older servers: %w", err)
	}
	return step(ctx, c, log, func(tx pgx.Tx) error {
		start := time.Now()
		for _, statement := range []string{
			`TRUNCATE claims`, // which locks the table
			freeLocks,
			`CREATE TEMPORARY TABLE made_claims (workspace_id uuid, kind text COLLATE "C", value text COLLATE "C", contact_id uuid) ON COMMIT DROP`,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		contacts, err := claimAll(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, gatherClaims); err != nil {
			return err
		}
		if err := foldMembers(ctx, tx); err != nil {
			return err
		}
		if err := canonicalNumbers(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, setRules, rules); err != nil {
			return err
		}
		var shared int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM claims WHERE share > 0`).Scan(&shared); err != nil {
			return err
		}
		if contacts > 0 {
			log.Info("rebuilt the claims of all contacts", "contacts", contacts, "shared", shared,
				"seconds", time.Since(start).Seconds(), "rules", rules)
		}
		return nil
	})
}

const setRules = `INSERT INTO claim_rules (one, rules) VALUES (1, $1) ON CONFLICT (one) DO UPDATE SET rules = excluded.rules`

// fence makes every server with other rules stop writing. It raises the version of all
// settings, so that the servers read the rules again. Each transaction first reads the
// version from the table workspaces. So fence locks this table, and thus waits for the
// transactions that are under way. It holds the lock only for a moment: during the
// rebuild, such a server still answers reads.
func fence(ctx context.Context, c *pgx.Conn, rules string, log *slog.Logger) error {
	return step(ctx, c, log, func(tx pgx.Tx) error {
		for _, statement := range []string{
			`LOCK TABLE workspaces IN ACCESS EXCLUSIVE MODE`,
			`UPDATE workspaces SET settings_version = ` + nextVersion("settings_version", "id"),
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, setRules, stored.Unfinished(rules))
		return err
	})
}

func claimAll(ctx context.Context, tx pgx.Tx) (contacts int, err error) {
	var ws, last desk.ID
	for {
		var made [][]any
		rows, err := tx.Query(ctx, contactsForClaims, uuid(ws), uuid(last), claimPage)
		if err != nil {
			return 0, err
		}
		n := 0
		for ; rows.Next(); n++ {
			var contact desk.Contact
			var further string
			if err := rows.Scan(into(&ws), into(&contact.ID), &contact.ExternalID, &contact.Email, &contact.Phone, &further); err != nil {
				return 0, err
			}
			if contact.Further, err = desk.StoredFurther(further); err != nil {
				return 0, err
			}
			last = contact.ID
			for _, claim := range contact.Claims() {
				made = append(made, []any{uuid(ws), claim.Kind, claim.Value, uuid(contact.ID)})
			}
		}
		if err := rows.Err(); err != nil {
			return 0, err
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"made_claims"}, []string{"workspace_id", "kind", "value", "contact_id"}, pgx.CopyFromRows(made)); err != nil {
			return 0, err
		}
		if contacts += n; n < claimPage {
			return contacts, nil
		}
	}
}

// foldMembers stores for each member the form of the e-mail that must be unique. If
// several members have the same form, the first one gets it, and each of the others gets
// this form followed by its own id.
func foldMembers(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT workspace_id, id, email FROM members ORDER BY workspace_id, id`)
	if err != nil {
		return err
	}
	type member struct {
		ws, id desk.ID
		email  string
	}
	members, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m member, err error) {
		err = row.Scan(into(&m.ws), into(&m.id), &m.email)
		return m, err
	})
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM directory WHERE kind = $1`, stored.Email); err != nil {
		return err
	}
	// At first, each member gets a form that no other member can have. Otherwise a new form
	// could be equal to the old form of another member.
	if _, err := tx.Exec(ctx, `UPDATE members SET email_folded = id::text`); err != nil {
		return err
	}
	taken := map[[2]string]bool{}
	for _, m := range members {
		email := desk.CanonicalEmail(m.email)
		if _, err := tx.Exec(ctx, `INSERT INTO directory (kind, ref, workspace_id) VALUES ($1, $2, $3)`,
			stored.Email, stored.EmailRef(&desk.Member{ID: m.id, Email: m.email}), uuid(m.ws)); err != nil {
			return err
		}
		if of := [2]string{string(m.ws[:]), email}; taken[of] {
			email += " " + m.id.String()
		} else {
			taken[of] = true
		}
		if _, err := tx.Exec(ctx, `UPDATE members SET email_folded = $3 WHERE workspace_id = $1 AND id = $2`, uuid(m.ws), uuid(m.id), email); err != nil {
			return err
		}
	}
	return nil
}

// canonicalNumbers rewrites numbers outside of contacts in canonical form.
func canonicalNumbers(ctx context.Context, tx pgx.Tx) error {
	for _, of := range []struct {
		read  string
		write []string
	}{
		{`SELECT DISTINCT value FROM callback_people`, []string{
			`INSERT INTO callback_people (workspace_id, value, received_at, id) SELECT workspace_id, $2, received_at, id FROM callback_people WHERE value = $1 ON CONFLICT DO NOTHING`,
			`DELETE FROM callback_people WHERE value = $1 AND value <> $2`,
		}},
		{`SELECT DISTINCT number FROM attempts WHERE phase IN ('dispatching', 'in_doubt')`, []string{
			`UPDATE attempts SET number = $2 WHERE number = $1 AND phase IN ('dispatching', 'in_doubt')`,
		}},
	} {
		rows, err := tx.Query(ctx, of.read)
		if err != nil {
			return err
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, n := range numbers {
			canonical := desk.CanonicalNumber(n)
			if canonical == n {
				continue
			}
			for _, statement := range of.write {
				if _, err := tx.Exec(ctx, statement, n, canonical); err != nil {
					return fmt.Errorf("numbers: %w", err)
				}
			}
		}
	}
	return nil
}

// Shared lists the claims that several contacts have shared since an older release.
func (s *Store) Shared(ctx context.Context, ws desk.ID) (list []desk.SharedClaim, err error) {
	err = s.read(ctx, func(p *pipe) error {
		rows, err := all(p, "shared claims", func(row pgx.Row) (one desk.SharedClaim, err error) {
			one.Contacts = make([]desk.ID, 1)
			err = row.Scan(&one.Kind, &one.Value, into(&one.Contacts[0]))
			return one, err
		}, sharedQuery, uuid(ws))
		list = desk.GatherShared(rows)
		return err
	})
	return list, err
}
