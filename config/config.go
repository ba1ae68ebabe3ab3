package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The defaults of settings that are missing or empty.
const (
	DefaultData   = "./parley-data"
	DefaultListen = "127.0.0.1:8480"
)

// Storage says where an installation keeps its data.
type Storage struct {
	Dir string // the data directory
	URL string // of the PostgreSQL database; "" means SQLite in the directory

	Media string // with PostgreSQL, the directory for the content of files; "": content is in the database
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
		return Storage{}, fmt.Errorf("%w; without --database and PARLEY_DATABASE_URL, parley uses SQLite in the data directory", err)
	}
	return s, nil
}

// CheckURL refuses a URL that can't be that of a PostgreSQL database.
func CheckURL(database string) error {
	u, err := url.Parse(database)
	switch {
	case err != nil || u.Scheme == "":
		// The URL may contain a password, and err contains the URL, so neither is shown.
		return errors.New("the database's URL can't be read: give one such as postgres://USER:PASSWORD@HOST:5432/NAME, in which a password's / is written %2F, its @ %40 and its % %25")
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return fmt.Errorf("a database's URL begins with postgres://, not %s://", u.Scheme)
	case strings.Trim(u.Path, "/") == "" && !u.Query().Has("dbname"):
		return errors.New("the database's URL names no database: give one such as postgres://USER:PASSWORD@HOST:5432/NAME")
	}
	return nil
}

// String describes the place for people, without a password.
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

// MaxConns returns pool_max_conns of the PostgreSQL URL: the greatest number of
// connections from this process. It returns 0 if the URL does not have it. The store
// checks the value.
func (s Storage) MaxConns() int32 {
	u, err := url.Parse(s.URL)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(u.Query().Get("pool_max_conns"), 10, 32)
	return int32(n)
}

// HidePassword returns a database's URL with PASSWORD instead of the password.
func HidePassword(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return "URL" // the password could not be found in it
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), "PASSWORD")
	}
	if query := u.Query(); query.Has("password") {
		query.Set("password", "PASSWORD")
		u.RawQuery = query.Encode()
	}
	return u.String()
}

// Database returns the path of the SQLite file.
func (s Storage) Database() string { return filepath.Join(s.Dir, "parley.db") }

// HoldsSQLite tells whether the data directory has a SQLite database. An empty file does
// not count: it is left over from an interrupted copy or start. A file that can't be
// examined counts: opening it then returns the error.
func (s Storage) HoldsSQLite() bool {
	info, err := os.Stat(s.Database())
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
	}
	return info.Size() > 0
}

// ServeLock returns the path of the file that a server keeps locked while it serves a
// SQLite database.
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

// ParsePublicURL checks the address by which clients reach the server, and returns it
// without a slash at the end. If it is empty, the listener's address is used instead.
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

// LocalHost returns the HOST:PORT of a listener for a browser on this machine.
func LocalHost(a net.Addr) string { return ListenHost(a.String()) }

// ListenHost is like LocalHost, for a HOST:PORT to listen on.
func ListenHost(listen string) string {
	if strings.HasPrefix(listen, ":") { // every address
		listen = "0.0.0.0" + listen
	}
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return listen
	}
	if ip := at.Addr(); ip.IsUnspecified() {
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), at.Port())
	}
	return at.String()
}
