package web_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/desk"
	"parley/web"
)

// TestUpload: a body that is read as it comes may be slow. It may neither stand still for
// too long nor take longer than the total time. A body that is cut off or endless is also
// refused.
func TestUpload(t *testing.T) {
	t.Parallel()
	const total, still = 10 * time.Minute, 30 * time.Second
	for name, c := range map[string]struct {
		header string
		part   string
		every  time.Duration // 0: no further parts come
		parts  int
		cut    bool
		took   time.Duration
		failed bool
	}{
		"slow and complete":  {"Content-Length: 20", "x", 20 * time.Second, 20, false, 400 * time.Second, false},
		"slow chunks":        {"Transfer-Encoding: chunked", "1\r\nx\r\n", 20 * time.Second, 20, false, 400 * time.Second, false},
		"stands still":       {"Content-Length: 20", "x", 0, 1, false, still, true},
		"never begins":       {"Content-Length: 20", "", 0, 0, false, still, true},
		"too slow":           {"Content-Length: 1000", "x", 29 * time.Second, 1000, false, total, true},
		"chunks without end": {"Transfer-Encoding: chunked", "1\r\nx\r\n", 29 * time.Second, 1000, false, total, true},
		"cut off":            {"Content-Length: 20", "x", time.Second, 3, true, 3 * time.Second, true},
		"a cut chunk":        {"Transfer-Encoding: chunked", "5\r\nx\r\n", time.Second, 1, true, time.Second, true},
		"no chunk":           {"Transfer-Encoding: chunked", "zz\r\n", time.Second, 1, false, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				type end struct {
					read []byte
					err  error
					took time.Duration
				}
				ended := make(chan end, 1)
				s.Handle("POST /x", func(w *web.Response, _ *http.Request) error {
					began := time.Now()
					content, err := w.Upload(desk.ID{1}, total, still)
					var b []byte
					if err == nil {
						b, err = io.ReadAll(content)
					}
					ended <- end{b, err, time.Since(began)}
					if err != nil {
						return err
					}
					<-time.After(2 * time.Minute) // to store it may take time
					w.Reply(http.StatusCreated, "text/plain", []byte("stored"))
					return nil
				}, fail)
				s.start()
				client, ours := net.Pipe()
				s.pipes <- ours
				answered := make(chan string, 1)
				go func() {
					b, _ := io.ReadAll(io.LimitReader(client, 12))
					answered <- string(b)
					_, _ = io.Copy(io.Discard, client)
				}()
				var sending sync.WaitGroup
				sending.Go(func() {
					_, err := fmt.Fprintf(client, "POST /x HTTP/1.1\r\nHost: parley\r\n%s\r\n\r\n", c.header)
					for range c.parts {
						if err == nil {
							<-time.After(c.every)
							_, err = io.WriteString(client, c.part)
						}
					}
					if err == nil && c.every > 0 && strings.HasPrefix(c.header, "Transfer") && !c.failed {
						_, _ = io.WriteString(client, "0\r\n\r\n")
					}
					if c.cut {
						_ = client.Close()
					}
				})
				e := <-ended
				if e.took != c.took {
					t.Errorf("it took %v, want %v", e.took, c.took)
				}
				answer := <-answered
				switch {
				case c.failed && !desk.IsType(e.err, desk.InvalidRequest):
					t.Errorf("it read %q: %v", e.read, e.err)
				case !c.failed && (e.err != nil || string(e.read) != strings.Repeat("x", c.parts)):
					t.Errorf("it read %q: %v", e.read, e.err)
				case !c.failed && answer != "HTTP/1.1 201":
					t.Errorf("it is answered %q", answer)
				case c.failed && !c.cut && answer != "HTTP/1.1 418":
					t.Errorf("it is answered %q", answer)
				}
				_ = client.Close()
				sending.Wait()
				if err := s.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestUploadTurns: a workspace has at most half of the uploads of a server. If others of
// the workspace wait, an upload that stands still, or gets a byte now and then, is dropped
// after a second. It is not dropped for a workspace that has room. An upload that moves, or
// whose server is busy, is not dropped.
func TestUploadTurns(t *testing.T) {
	t.Parallel()
	const half = 12
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		read := make(chan string, 100) // the names of uploads of which a byte was read
		busy := make(chan struct{})
		s.Handle("POST /{who}/{name}", func(w *web.Response, r *http.Request) error {
			content, err := w.Upload(desk.ID{r.PathValue("who")[0]}, time.Hour, time.Hour)
			if err != nil {
				return err
			}
			if _, err := io.ReadFull(content, make([]byte, 1)); err != nil {
				return err
			}
			read <- r.PathValue("name")
			if r.PathValue("name") == "busy" {
				<-busy
			}
			if _, err = io.Copy(io.Discard, content); err != nil {
				return err
			}
			w.Reply(http.StatusCreated, "text/plain", nil)
			return nil
		}, fail)
		s.start()
		var clients sync.WaitGroup
		defer clients.Wait()
		answers := make(chan string, 100)
		send := func(who, name string) net.Conn {
			client, ours := net.Pipe()
			s.pipes <- ours
			clients.Go(func() {
				_, _ = fmt.Fprintf(client, "POST /%s/%s HTTP/1.1\r\nHost: parley\r\nContent-Length: 100000\r\n\r\nx", who, name)
			})
			clients.Go(func() {
				b, _ := io.ReadAll(io.LimitReader(client, 12))
				answers <- name + " " + string(b)
				_ = client.Close()
			})
			return client
		}
		send("a", "busy")
		<-read
		moves := send("a", "moves")
		<-read
		clients.Go(func() {
			for n := 0; n < 99_999; n += 2000 {
				<-time.After(300 * time.Millisecond)
				_, _ = moves.Write(make([]byte, min(2000, 99_999-n)))
			}
		})
		for range half - 2 {
			slow := send("a", "slow")
			<-read
			clients.Go(func() {
				for {
					<-time.After(400 * time.Millisecond)
					if _, err := slow.Write([]byte("x")); err != nil {
						return
					}
				}
			})
		}
		<-time.After(3 * time.Second)
		if len(answers) > 0 {
			t.Errorf("%s, though nobody waits", <-answers)
		}
		send("b", "b")
		begun := time.Now()
		if <-read; time.Since(begun) > 0 || len(answers) > 0 {
			t.Errorf("another workspace waits %v", time.Since(begun))
		}
		for range 3 {
			begun = time.Now()
			send("a", "next")
			for got := ""; got != "next"; {
				select {
				case got = <-read:
				case answer := <-answers:
					if answer != "slow HTTP/1.1 418" {
						t.Error(answer)
					}
				}
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("an upload of the same workspace waits %v", took)
			}
		}
		close(busy)
		_ = s.end()
	})
}
