package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// The defaults of what is not given, or given empty.
const (
	DefaultData   = "./parley-data"
	DefaultListen = "127.0.0.1:8480"
)

// Storage says where an installation keeps its data.
type Storage struct {
	Dir string // the data directory
	URL string // of the PostgreSQL database; "" means SQLite in the directory
}

// NewStorage takes the data directory and the database's URL, which may be empty.
func NewStorage(dir, database string) (Storage, error) {
	if dir == "" {
		dir = DefaultData
	}
	s := Storage{Dir: dir, URL: database}
	if database == "" {
		return s, nil
	}
	if err := CheckURL(database); err != nil {
		return Storage{}, fmt.Errorf("%w; without --database and PARLEY_DATABASE_URL it is SQLite in the data directory", err)
	}
	return s, nil
}

// CheckURL tells what is wrong with a PostgreSQL database's URL.
func CheckURL(database string) error {
	u, err := url.Parse(database)
	switch {
	case err != nil || u.Scheme == "":
		// It may hold a password, so no line repeats it; nor does it show err, which does.
		return errors.New("the database's URL can't be read: give one such as postgres://USER:PASSWORD@HOST:5432/NAME, in which a password's / is written %2F, its @ %40 and its % %25")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return fmt.Errorf("a database's URL begins with postgres://, not %s://", u.Scheme)
	case strings.Trim(u.Path, "/") == "" && !u.Query().Has("dbname"):
		return errors.New("the database's URL names no database: give one such as postgres://USER:PASSWORD@HOST:5432/NAME")
	}
	return nil
}

// String names the place for people, without a password.
func (s Storage) String() string {
	u, err := url.Parse(s.URL)
	if s.URL == "" || err != nil {
		return "the data directory " + s.Dir
	}
	query := u.Query()
	name := cmp.Or(strings.Trim(u.Path, "/"), query.Get("dbname"))
	host := cmp.Or(u.Host, query.Get("host"), "this machine")
	return fmt.Sprintf("the database %s at %s", name, host)
}

// MaxConns is how many connections a PostgreSQL database may get from this process, by
// the URL's pool_max_conns; 0 when it doesn't say. Whether it makes sense is judged by
// who opens the database.
func (s Storage) MaxConns() int32 {
	u, err := url.Parse(s.URL)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(u.Query().Get("pool_max_conns"), 10, 32)
	return int32(n)
}

// Database is the SQLite file.
func (s Storage) Database() string { return filepath.Join(s.Dir, "parley.db") }

// ServeLock is the file that a server holds locked while it serves a SQLite database.
func (s Storage) ServeLock() string { return filepath.Join(s.Dir, "serve.lock") }

func (s Storage) secretFile() string { return filepath.Join(s.Dir, "secret.key") }

// ParseListen checks a HOST:PORT to listen on.
func ParseListen(text string) (string, error) {
	if text == "" {
		return DefaultListen, nil
	}
	if _, _, err := net.SplitHostPort(text); err != nil {
		return "", fmt.Errorf("%q is no address to listen on: give HOST:PORT, such as %s; port 0 picks a free one", text, DefaultListen)
	}
	return text, nil
}

// ParsePublicURL checks the address that others reach the server by, and returns
// it without a closing slash. Empty stays empty: it is then the listener's own.
func ParsePublicURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || strings.ContainsAny(text, "?#") {
		return "", fmt.Errorf("%q is no public URL: give one such as https://parley.example.com", text)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// LocalURL is where a browser on this machine reaches a listener.
func LocalURL(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return "http://" + a.String()
	}
	if ip := at.Addr(); ip.IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return "http://" + at.String()
}
