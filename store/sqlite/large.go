package sqlite

import (
	"slices"

	"parley/desk"
)

// A value of more than largeBytes is stored in the table large_values. In its place, the
// contact's row has the text apart, which is not equal to any value. Rows must stay
// short, because SQLite reads a whole row of contacts to compare keys (docs/adr/0021).
const (
	largeBytes = 8 << 10
	apart      = ">"
)

// The fields of contacts that may be in large_values.
const (
	attributesField = "attributes"
	furtherField    = "further"
)

const largeQuery = `SELECT value FROM large_values WHERE workspace_id = ? AND contact_id = ? AND field = ?`

// readLarge reads a contact's value from large_values. The statement that found the
// contact is still open, so this read sees the same commit.
func readLarge(c conn, ws, id desk.ID, field string) (string, error) {
	return one("large value", c.stmt(largeQuery).id(ws).id(id).text(field), (*stmt).readText)
}

func readFurther(c conn, ws, id desk.ID) ([]desk.Identity, error) {
	text, err := readLarge(c, ws, id, furtherField)
	if err != nil {
		return nil, err
	}
	return desk.StoredFurther(text)
}

// These expressions select the values, whether they are in the row or in large_values, so
// that a single query reads everything.
const (
	attributesOf = `CASE c.attributes WHEN '` + apart + `' THEN (SELECT l.value FROM large_values l
		WHERE l.workspace_id = c.workspace_id AND l.contact_id = c.id AND l.field = '` + attributesField + `') ELSE c.attributes END`
	furtherOf = `CASE c.further WHEN '` + apart + `' THEN (SELECT l.value FROM large_values l
		WHERE l.workspace_id = c.workspace_id AND l.contact_id = c.id AND l.field = '` + furtherField + `') ELSE c.further END`
)

const (
	putLargeQuery = `INSERT INTO large_values (workspace_id, contact_id, field, value) VALUES (?, ?, ?, ?)
		ON CONFLICT (workspace_id, contact_id, field) DO UPDATE SET value = excluded.value`
	dropLargeQuery  = `DELETE FROM large_values WHERE workspace_id = ? AND contact_id = ? AND field = ?`
	eraseLargeQuery = `DELETE FROM large_values WHERE workspace_id = ? AND contact_id = ?`
)

// storeValues stores the large values of a contact's new state, and returns the values
// for the contact's row. A large value that has not changed is not written again.
func storeValues(c conn, ws desk.ID, e *desk.Entry) (attributes, further string, err error) {
	was := e.Stored
	if was == nil {
		was = &desk.Contact{}
	}
	attributes = e.Now.Attributes.JSON()
	if attributes, err = storeValue(c, ws, e.Now.ID, attributesField, attributes, was.Apart.Attributes, was.Attributes == e.Now.Attributes); err != nil {
		return "", "", err
	}
	same := was.Apart.Further && slices.Equal(was.Further, e.Now.Further)
	if same {
		return attributes, apart, nil
	}
	further, err = storeValue(c, ws, e.Now.ID, furtherField, desk.FurtherText(e.Now.Further), was.Apart.Further, false)
	return attributes, further, err
}

// storeValue stores the value of one field. If was is set, the old value is in
// large_values. If same is set, the value has not changed.
func storeValue(c conn, ws, id desk.ID, field, value string, was, same bool) (inRow string, err error) {
	switch large := len(value) > largeBytes; {
	case large && was && same:
		return apart, nil
	case large:
		return apart, c.stmt(putLargeQuery).id(ws).id(id).text(field).text(value).run()
	case was:
		err = c.stmt(dropLargeQuery).id(ws).id(id).text(field).run()
	}
	return value, err
}

// eraseLarge deletes the large values of a contact.
func eraseLarge(c conn, ws desk.ID, contact *desk.Contact) error {
	if contact.Apart == (desk.Apart{}) {
		return nil
	}
	return c.stmt(eraseLargeQuery).id(ws).id(contact.ID).run()
}
