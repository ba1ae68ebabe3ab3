package stored

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Migration is one step of a schema: statements that run in one transaction.
type Migration struct {
	Version    int64
	Statements string
}

// Migrations returns the steps of a schema in order. Step 0 creates the table that lists
// the steps which have run. The others are files such as 00001_contacts.sql.
func Migrations(makeList string, files fs.FS) (list []Migration, err error) {
	list = []Migration{{0, makeList}}
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		list = append(list, Migration{version, string(text)})
	}
	slices.SortFunc(list, func(a, b Migration) int { return int(a.Version - b.Version) })
	return list, nil
}

// Pending returns the migrations that a database has not run, or an error if it was
// written by a newer parley.
func Pending(database string, all []Migration, ran []int64) ([]Migration, error) {
	newest := all[len(all)-1].Version
	if len(ran) > 0 && slices.Max(ran) > newest {
		return nil, fmt.Errorf("%s was written by a newer parley (schema %d, this one knows %d): install that version or a later one", database, slices.Max(ran), newest)
	}
	return slices.DeleteFunc(slices.Clone(all), func(m Migration) bool { return slices.Contains(ran, m.Version) }), nil
}
