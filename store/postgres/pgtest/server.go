package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Server is a PostgreSQL server that this process has started. A server that a test
// has for itself syncs each commit to the disk, like one in production.
type Server struct {
	URL string // of the database postgres, with all rights

	hasty bool   // the server does not sync to the disk
	citus bool   // it is one of a Citus cluster
	dir   string // the data, the log and the socket; removed when the server ends
	bin   string // where the programs are
	port  int
	guard *exec.Cmd
	alive io.Closer // when this is closed, the guard stops the server
}

// missing is an error. It names the program without which a server can't be started.
type missing string

func (m missing) Error() string { return string(m) }

// The guard is a process that stops the server when this process ends, even by a kill.
// At that moment the guard's standard input is closed.
const guard = `cat; "$1"/pg_ctl stop -D "$2"/data -m immediate; rm -rf "$2"`

// start creates a server in a directory ("": the one for temporary files) and starts it.
// An error of type missing is returned as it is.
func start(in string, hasty, citus bool) (_ *Server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	if _, err := identity(); err != nil {
		return nil, err
	}
	if hasty && in == "" {
		in = memory()
	}
	// Files that are written before the server runs need no sync.
	return startFrom(in, bin, hasty, citus, func(s *Server) error {
		return s.run("initdb", "-D", s.data(), "-U", "postgres", "--no-locale", "--encoding=UTF8", "--auth=trust", "--no-sync")
	})
}

// startFrom starts a server on the files that the function make creates.
func startFrom(in, bin string, hasty, citus bool, make func(*Server) error) (_ *Server, err error) {
	dir, err := os.MkdirTemp(in, "parley-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, hasty: hasty, citus: citus}
	if err := own(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.guard, err = s.command("/bin/sh", "-c", guard, "sh", bin, dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.alive, err = s.guard.StdinPipe(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.guard.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	err = make(s)
	for try := 0; err == nil; try++ {
		if s.port, err = freePort(); err != nil {
			break
		}
		s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", s.port)
		started := s.Start()
		if started == nil {
			return s, nil
		}
		if try == 3 { // another process may have taken the port
			err = started
		}
	}
	return nil, errors.Join(err, s.end())
}

// Standby starts a standby of the server, and stops it when the test ends. Replication
// is asynchronous.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby, err := startFrom("", s.bin, s.hasty, false, func(standby *Server) error {
		return standby.run("pg_basebackup", "-D", standby.data(), "-d", s.URL, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	})
	check(t, err)
	t.Cleanup(func() {
		if err := standby.end(); err != nil {
			t.Error(err)
		}
	})
	return standby
}

// Sibling returns the URL of the database on this server that has the same name as the
// given one.
func (s *Server) Sibling(t testing.TB, database string) string {
	t.Helper()
	return sibling(t, s.URL, database[strings.LastIndexByte(database, '/')+1:])
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Start starts the server again after Stop, and returns when it accepts connections.
func (s *Server) Start() error {
	log := filepath.Join(s.dir, "log")
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -p %d -k '%s' -c max_connections=200", s.port, s.dir)
	if s.hasty {
		options += " -c fsync=off -c full_page_writes=off"
	}
	if s.citus {
		options += " -c shared_preload_libraries=citus -c wal_level=logical -c max_prepared_transactions=400 -c citus.node_conninfo=sslmode=disable"
	}
	err := s.run("pg_ctl", "start", "-D", s.data(), "-l", log, "-w", "-t", strconv.Itoa(int(patience.Seconds())), "-o", options)
	if err != nil {
		text, _ := os.ReadFile(log)
		err = fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
	}
	return err
}

// Stop stops the server in one of pg_ctl's modes: smart, fast, or immediate, which is like
// a crash.
func (s *Server) Stop(mode string) error {
	return s.run("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-w")
}

// Program returns the path of one of PostgreSQL's programs, such as pg_dump.
func (s *Server) Program(name string) string { return filepath.Join(s.bin, name) }

// end stops the server and deletes its files.
func (s *Server) end() error { return errors.Join(s.alive.Close(), s.guard.Wait()) }

// run runs one of PostgreSQL's programs and waits for it.
func (s *Server) run(program string, args ...string) error {
	cmd, err := s.command(s.Program(program), args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// command returns a command that runs as the server's user, in a directory that this
// user may read. The command does not get the terminal's Ctrl-C.
func (s *Server) command(program string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	var err error
	cmd.SysProcAttr, err = identity()
	return cmd, err
}

// programs returns the directory of initdb and the other programs. On Debian it is not
// in PATH.
func programs() (string, error) {
	var candidates []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			candidates = append(candidates, filepath.Dir(path))
		}
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(debian, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range append(candidates, debian...) {
		if !slices.ContainsFunc([]string{"initdb", "pg_ctl", "postgres"}, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir, nil
		}
	}
	return "", missing("initdb, pg_ctl and postgres are not installed together")
}

// version returns the number N of a directory /usr/lib/postgresql/N/bin, or 0 for old
// versions such as 9.6.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// freePort finds a port below the range for outgoing connections. Another process could
// take a port in that range while the server is stopped. A client that retries could
// even connect to itself.
func freePort() (int, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		port := 15000 + rand.IntN(15000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, listener.Close()
		}
	}
	return 0, errors.New("no port is free on " + runtime.GOOS)
}
