package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/desk"
	"parley/store/internal/stored"
)

const (
	// OR FAIL: after a failure, the whole transaction is rolled back. So SQLite need not
	// prepare to undo only this statement.
	takeClaimQuery = `INSERT OR FAIL INTO claims (workspace_id, kind, value, share, contact_id) VALUES (?1, ?2, ?3, 0, ?4)`
	takeThreeQuery = takeClaimQuery + `, (?1, ?5, ?6, 0, ?4), (?1, ?7, ?8, 0, ?4)`
	// A claim that contacts share since an older release keeps its place among them.
	passClaimQuery    = `UPDATE claims SET contact_id = ?5 WHERE workspace_id = ?1 AND kind = ?2 AND value = ?3 AND contact_id = ?4`
	releaseClaimQuery = `DELETE FROM claims WHERE workspace_id = ? AND kind = ? AND value = ? AND contact_id = ?`
	makeClaimQuery    = `INSERT INTO claims (workspace_id, kind, value, share, contact_id)
	SELECT ?1, ?2, ?3, coalesce(max(share) + 1, 0), ?4 FROM claims WHERE workspace_id = ?1 AND kind = ?2 AND value = ?3`
	sharedQuery = `SELECT c.kind, c.value, c.contact_id
	FROM (SELECT DISTINCT kind, value FROM claims INDEXED BY claims_shared WHERE workspace_id = ?1 AND share > 0) s
	CROSS JOIN claims c ON c.workspace_id = ?1 AND c.kind = s.kind AND c.value = s.value ORDER BY 1, 2, 3`
)

const rulesQuery = `SELECT rules FROM claim_rules`

// makeClaims rebuilds the claims in one transaction if they were made by older rules. An
// interrupted run stores nothing, and the next run begins again. The contacts are read
// one by one, so the memory does not depend on their number. The versions of all
// settings rise: a server that still runs on the database then reads the new rules and
// stops writing.
func makeClaims(ctx context.Context, path, rules string, log *slog.Logger) (err error) {
	c, err := open(path, writerCache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, failed("close", c.Close())) }()
	c.SetInterrupt(ctx.Done())
	known, err := one("rules of claims", c.stmt(rulesQuery), (*stmt).readText)
	if err != nil {
		return err
	}
	if rebuild, err := stored.Rebuild(rules, known); err != nil || !rebuild {
		return err
	}
	start := time.Now()
	if err := c.stmt(beginWrite).run(); err != nil {
		return failed("begin", err)
	}
	contacts, shared := 0, 0
	steps := []func() error{
		c.stmt(`DELETE FROM claims`).run,
		func() (err error) { contacts, shared, err = claimAll(c); return err },
		func() error { return foldMembers(c) },
		func() error { return canonicalNumbers(c) },
		c.stmt(`REPLACE INTO claim_rules (one, rules) VALUES (1, ?)`).text(rules).run,
		c.stmt(`UPDATE workspaces SET settings_version = settings_version + 1`).run,
		c.stmt(`COMMIT`).run,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return failed("make claims", err) // closing rolls back
		}
	}
	if contacts > 0 {
		log.Info("rebuilt the claims of all contacts", "contacts", contacts, "shared", shared,
			"seconds", time.Since(start).Seconds(), "rules", rules)
	}
	return nil
}

func claimAll(c conn) (contacts, shared int, err error) {
	rows := c.stmt(`SELECT c.workspace_id, c.id, c.external_id, c.email, c.phone, ` + furtherOf + ` FROM contacts c ORDER BY c.workspace_id, c.id`)
	for rows.next() {
		ws := rows.readID()
		contact := desk.Contact{ID: rows.readID(), ExternalID: rows.readText(), Email: rows.readText(), Phone: rows.readText()}
		if contact.Further, rows.fail = desk.StoredFurther(rows.readText()); rows.fail != nil {
			break
		}
		contacts++
		for _, claim := range contact.Claims() {
			if rows.fail = c.stmt(makeClaimQuery).id(ws).text(claim.Kind).text(claim.Value).id(contact.ID).run(); rows.fail != nil {
				break
			}
		}
	}
	if err := rows.done(); err != nil {
		return 0, 0, err
	}
	count := c.stmt(`SELECT count(*) FROM claims WHERE share > 0`)
	for count.next() {
		shared = int(count.readInt())
	}
	return contacts, shared, count.done()
}

// foldMembers stores for each member the form of the e-mail that must be unique. If
// several members have the same form, the first one gets it, and each of the others gets
// this form followed by its own id.
func foldMembers(c conn) error {
	type member struct {
		ws, id desk.ID
		email  string
	}
	members, err := all("members", c.stmt(`SELECT workspace_id, id, email FROM members ORDER BY workspace_id, id`), func(s *stmt) member {
		return member{s.readID(), s.readID(), desk.CanonicalEmail(s.readText())}
	})
	if err != nil {
		return err
	}
	if err := c.stmt(`DELETE FROM directory WHERE kind = ?`).text(stored.Email).run(); err != nil {
		return err
	}
	// At first, each member gets a form that no other member can have. Otherwise a new form
	// could be equal to the old form of another member.
	if err := c.stmt(`UPDATE members SET email_folded = hex(id)`).run(); err != nil {
		return err
	}
	taken := map[[2]string]bool{}
	for _, m := range members {
		if err := enter(c, stored.Email, stored.EmailRef(&desk.Member{ID: m.id, Email: m.email}), m.ws); err != nil {
			return err
		}
		if of := [2]string{string(m.ws[:]), m.email}; taken[of] {
			m.email += " " + m.id.String()
		} else {
			taken[of] = true
		}
		if err := c.stmt(`UPDATE members SET email_folded = ? WHERE workspace_id = ? AND id = ?`).text(m.email).id(m.ws).id(m.id).run(); err != nil {
			return err
		}
	}
	return nil
}

// canonicalNumbers rewrites numbers outside of contacts in canonical form.
func canonicalNumbers(c conn) error {
	for _, of := range []struct{ read, write string }{
		{`SELECT DISTINCT value FROM callback_people`, `UPDATE OR REPLACE callback_people SET value = ?2 WHERE value = ?1`},
		{`SELECT DISTINCT number FROM attempts WHERE phase IN ('dispatching', 'in_doubt')`,
			`UPDATE attempts SET number = ?2 WHERE number = ?1 AND phase IN ('dispatching', 'in_doubt')`},
	} {
		numbers, err := all("numbers", c.stmt(of.read), (*stmt).readText)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			if canonical := desk.CanonicalNumber(n); canonical != n {
				if err := c.stmt(of.write).text(n).text(canonical).run(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Shared lists the claims that several contacts have shared since an older release.
func (s *Store) Shared(ctx context.Context, ws desk.ID) (list []desk.SharedClaim, err error) {
	err = s.read(ctx, pointRead, func(c conn) error {
		rows, err := all("shared claims", c.stmt(sharedQuery).id(ws), func(s *stmt) desk.SharedClaim {
			return desk.SharedClaim{Claim: desk.Claim{Kind: s.readText(), Value: s.readText()}, Contacts: []desk.ID{s.readID()}}
		})
		list = desk.GatherShared(rows)
		return err
	})
	return list, err
}
