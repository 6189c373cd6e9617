package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"lanjobs/task"
)

// handClock is a clock whose timers of one length run out when the test says so.
type handClock struct {
	clock
	length time.Duration
	timers chan *handTimer
}

type handTimer struct{ c chan time.Time }

func (t *handTimer) C() <-chan time.Time      { return t.c }
func (t *handTimer) Stop() bool               { return true }
func (t *handTimer) Reset(time.Duration) bool { return true }

func (c *handClock) NewTimer(d time.Duration) task.Timer {
	if d != c.length {
		return c.clock.NewTimer(d)
	}
	t := &handTimer{make(chan time.Time, 1)}
	c.timers <- t
	return t
}

// C47: clients that begin a job and never send the rest of it keep others out for a moment only.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	c := newCluster(t)
	hand := &handClock{clock: newClock(), length: bodyWait, timers: make(chan *handTimer, 2*maxSubmits)}
	c.api.cfg.Clock = hand
	s := c.server()
	var slow []net.Conn
	var timers []*handTimer
	for range maxSubmits {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nname: ")
		slow, timers = append(slow, conn), append(timers, <-hand.timers)
	}
	posted := make(chan string, 1)
	go func() {
		r, err := http.Post(s.URL+"/v1/jobs", "application/yaml", strings.NewReader(hello))
		if err != nil {
			posted <- err.Error()
			return
		}
		_ = r.Body.Close()
		posted <- r.Status
	}()
	for _, timer := range timers {
		timer.c <- time.Now()
	}
	if got := <-posted; got != "201 Created" {
		t.Errorf("a submit beside them: %s", got)
	}
	for _, conn := range slow {
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		if r.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(body), "did not come within 20s") {
			t.Errorf("%s %s", r.Status, body)
		}
	}
}
