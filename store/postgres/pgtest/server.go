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
	"time"
)

// A Server is a PostgreSQL that this process has started. It makes what it
// acknowledges durable, as one in production does.
type Server struct {
	URL string // of the database postgres, with all rights

	dir   string // the data, the log and the socket; removed in the end
	bin   string // where the programs are
	port  int
	guard *exec.Cmd
	alive io.Closer // what the guard waits for the end of
}

// missing says what a server can't be started without.
type missing string

func (m missing) Error() string { return string(m) }

// The guard outlives this process, and ends what it has started: its standard input
// comes to an end when the process does, even by a kill. Nothing in Go runs then.
const guard = `cat; "$1"/pg_ctl stop -D "$2"/data -m immediate; rm -rf "$2"`

// start makes a server and starts it. It returns a missing as it is.
func start() (_ *Server, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	if _, err := identity(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "parley-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin}
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
	// What is written before the server runs needs no syncing.
	err = s.run("initdb", "-D", s.data(), "-U", "postgres", "--no-locale", "--encoding=UTF8", "--auth=trust", "--no-sync")
	for try := 0; err == nil; try++ {
		if s.port, err = freePort(); err != nil {
			break
		}
		s.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", s.port)
		started := s.Start()
		if started == nil {
			return s, nil
		}
		if try == 3 { // once it could be another process that took the port
			err = started
		}
	}
	return nil, errors.Join(err, s.end())
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Start starts the server again after Stop, and returns when it takes connections.
func (s *Server) Start() error {
	log := filepath.Join(s.dir, "log")
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -p %d -k '%s' -c max_connections=200", s.port, s.dir)
	err := s.run("pg_ctl", "start", "-D", s.data(), "-l", log, "-w", "-t", strconv.Itoa(int(patience.Seconds())), "-o", options)
	if err != nil {
		text, _ := os.ReadFile(log)
		err = fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
	}
	return err
}

// Stop stops the server, in one of pg_ctl's modes: smart, fast, or immediate, which is
// as a crash.
func (s *Server) Stop(mode string) error {
	return s.run("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-w")
}

// Program is where one of the programs that came with the server is, such as pg_dump.
func (s *Server) Program(name string) string { return filepath.Join(s.bin, name) }

// end stops the server for good and leaves nothing of it.
func (s *Server) end() error { return errors.Join(s.alive.Close(), s.guard.Wait()) }

// run runs one of PostgreSQL's programs to its end.
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

// command is one that runs as the server's user, where that one may look around, and
// apart from the terminal's Ctrl-C.
func (s *Server) command(program string, args ...string) (*exec.Cmd, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	var err error
	cmd.SysProcAttr, err = identity()
	return cmd, err
}

// programs returns the directory of initdb and its like: Debian keeps it out of PATH.
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

// version is N of /usr/lib/postgresql/N/bin, for 9.6 and its like 0.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// freePort finds a port below those that systems give to outgoing connections. One of
// theirs could be taken while the server is stopped, and a client that tries to connect
// again and again could even be connected to itself.
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
