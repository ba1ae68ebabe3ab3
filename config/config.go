package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
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
}

// NewStorage takes the data directory and the database's URL. An empty URL means
// SQLite in the directory, the only database that this build knows.
func NewStorage(dir, database string) (Storage, error) {
	if database != "" {
		// The URL may hold a password, so the line doesn't repeat it.
		return Storage{}, errors.New("this build keeps its data in SQLite under --data and knows no other database: leave out --database and PARLEY_DATABASE_URL")
	}
	if dir == "" {
		dir = DefaultData
	}
	return Storage{Dir: dir}, nil
}

// Database is the SQLite file.
func (s Storage) Database() string { return filepath.Join(s.Dir, "parley.db") }

// ServeLock is the file that a server holds locked while it serves the directory.
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
