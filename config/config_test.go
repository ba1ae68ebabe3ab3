package config_test

import (
	"net"
	"strings"
	"testing"

	"parley/config"
)

func TestNewStorage(t *testing.T) {
	t.Parallel()
	s, err := config.NewStorage("", "")
	if err != nil || s.Dir != config.DefaultData {
		t.Errorf("NewStorage of nothing = %+v, %v; want the default directory", s, err)
	}
	for url, want := range map[string]string{
		"":                                    "the data directory d",
		"postgres://ada:hunter2@db/parley":    "the database parley at db",
		"postgresql://ada@db:5433/a?x=y":      "the database a at db:5433",
		"postgres:///parley?host=/run/pg":     "the database parley at /run/pg",
		"postgres://a@h1,h2:5433/parley":      "the database parley at h1,h2:5433",
		"postgres://ada:a%2Fb@[::1]:5432/one": "the database one at [::1]:5432",
	} {
		s, err := config.NewStorage("d", url)
		if err != nil || s.Dir != "d" || s.URL != url || s.String() != want {
			t.Errorf("NewStorage(%q) = %q, %v; want %q", url, s, err, want)
		}
	}
	for url, want := range map[string]int32{
		"": 0, "postgres://db/parley": 0, "postgres://db/parley?pool_max_conns=5": 5, "postgres://db/parley?pool_max_conns=many": 0,
	} {
		if got := (config.Storage{URL: url}).MaxConns(); got != want {
			t.Errorf("MaxConns of %q = %d, want %d", url, got, want)
		}
	}
	for _, url := range []string{
		"mysql://ada:hunter2@db/parley", "sqlite:parley.db", "parley.db", "db:5432/parley", "postgres://", "postgres://db", "postgres://db/",
		"host=db password=hunter2", "postgres://ada:hunter2/x@db/parley", "postgres://ada:hunter2%@db/parley", "postgres://db:port/hunter2",
	} {
		_, err := config.NewStorage("d", url)
		if err == nil {
			t.Errorf("NewStorage took the URL %s", url)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats the URL, which may hold a password: %v", err)
		}
	}
}

func TestHidePassword(t *testing.T) {
	t.Parallel()
	for database, want := range map[string]string{
		"postgres://ada:hunter2@db/parley":                    "postgres://ada:PASSWORD@db/parley",
		"postgres://ada@db:5433/parley":                       "postgres://ada@db:5433/parley",
		"postgres://db/parley?password=hunter2":               "postgres://db/parley?password=PASSWORD",
		"postgres:///parley?host=%2Frun%2Fpg&sslmode=disable": "postgres:///parley?host=%2Frun%2Fpg&sslmode=disable",
		"postgres://ada:hunter2%@db/parley":                   "URL",
	} {
		if got := config.HidePassword(database); got != want {
			t.Errorf("HidePassword(%q) = %q, want %q", database, got, want)
		}
	}
}

func TestParseListen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, want string
		ok         bool
	}{
		{"", config.DefaultListen, true},
		{"127.0.0.1:0", "127.0.0.1:0", true},
		{":8480", ":8480", true},
		{"[::1]:80", "[::1]:80", true},
		{"8480", "", false},
		{"localhost", "", false},
		{"::1:80", "", false},
	} {
		got, err := config.ParseListen(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("ParseListen(%q) = %q, %v", tc.text, got, err)
		}
	}
}

func TestParsePublicURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text, want string
		ok         bool
	}{
		{"", "", true},
		{"https://parley.example.com", "https://parley.example.com", true},
		{"https://parley.example.com/", "https://parley.example.com", true},
		{"http://example.com:8480/desk/", "http://example.com:8480/desk", true},
		{"parley.example.com", "", false},
		{"ftp://example.com", "", false},
		{"https://", "", false},
		{"https://:8480", "", false},
		{"https://ada:pw@example.com", "", false},
		{"https://example.com/?a=b", "", false},
		{"https://example.com/#top", "", false},
		{"http://exa mple.com", "", false},
	} {
		got, err := config.ParsePublicURL(tc.text)
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("ParsePublicURL(%q) = %q, %v", tc.text, got, err)
		}
	}
}

func TestLocalHost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ ip, want string }{
		{"127.0.0.1", "127.0.0.1:8480"},
		{"192.0.2.7", "192.0.2.7:8480"},
		{"0.0.0.0", "127.0.0.1:8480"},
		{"::", "127.0.0.1:8480"},
		{"::1", "[::1]:8480"},
	} {
		if got := config.LocalHost(&net.TCPAddr{IP: net.ParseIP(tc.ip), Port: 8480}); got != tc.want {
			t.Errorf("LocalHost(%s) = %s, want %s", tc.ip, got, tc.want)
		}
	}
}
