package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/internal/answer"
)

// talker says more than any socket holds until it is told to stop.
type talker struct {
	fakeAsker
	stopped chan error
}

func (a *talker) Ask(ctx context.Context, _ time.Time, _ answer.Request, sink answer.Sink) (*answer.Result, error) {
	for ctx.Err() == nil {
		sink.Delta(strings.Repeat("x", 1<<20))
	}
	a.stopped <- ctx.Err()
	return &answer.Result{}, ctx.Err()
}

// Ingest is told of progress without end.
func (a *talker) Ingest(ctx context.Context, _ IngestRequest, progress func(ingest.Progress)) (ingest.Report, error) {
	for ctx.Err() == nil {
		progress(ingest.Progress{Current: strings.Repeat("x", 1<<20)})
	}
	a.stopped <- ctx.Err()
	return ingest.Report{Interrupted: true}, ctx.Err()
}

func stallServer(t *testing.T, a *talker, stall time.Duration) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(New(Deps{
		Guard: guard(t), Asker: a, Library: &fakeLibrary{}, Ingester: a, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
	}, Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Hour, Stall: stall}))
	t.Cleanup(srv.Close)
	return srv
}

func dial(t *testing.T, srv *httptest.Server, request string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A client that keeps its connection open and reads nothing is given up.
func TestUnreadAnswersEnd(t *testing.T) {
	for path, body := range map[string]string{"/ask": `{"question":"q","stream":true}`, "/v1/ingest": `{"paths":["/x"]}`} {
		t.Run(path, func(t *testing.T) {
			a := &talker{stopped: make(chan error, 1)}
			dial(t, stallServer(t, a, 100*time.Millisecond), fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))
			select {
			case <-a.stopped:
			case <-time.After(10 * time.Second):
				t.Error("it goes on")
			}
		})
	}
}

// A body that never comes whole is refused, and whatever else is wrong with its request.
func TestBodiesThatDoNotArrive(t *testing.T) {
	for name, head := range map[string]string{
		"cut off":      "POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"question\":",
		"never begun":  "POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"chunked":      "POST /ask HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"que\r\n",
		"to no route":  "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"to be waited": "POST /ask HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, stallServer(t, &talker{}, 100*time.Millisecond), head)
			if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err == nil && resp.StatusCode == http.StatusContinue {
				resp, err = http.ReadResponse(r, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			var e errorBody
			if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || resp.StatusCode/100 != 4 || e.Error.Message == "" {
				t.Errorf("%s: %+v, %v", resp.Status, e, err)
			}
		})
	}
}

// slow answers after a while.
type slow struct{ fakeAsker }

func (a *slow) Ask(ctx context.Context, received time.Time, req answer.Request, sink answer.Sink) (*answer.Result, error) {
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
		return &answer.Result{}, ctx.Err()
	}
	return a.fakeAsker.Ask(ctx, received, req, sink)
}

// An answer that takes long is no stalled client, nor are two on one connection.
func TestSlowAnswersAreWaitedFor(t *testing.T) {
	srv := httptest.NewServer(New(Deps{
		Guard: guard(t), Asker: &slow{}, Library: &fakeLibrary{}, Metrics: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler),
	}, Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Hour, Stall: 100 * time.Millisecond}))
	t.Cleanup(srv.Close)
	for range 2 {
		for _, body := range []string{`{"question":"q"}`, `{"question":"q","stream":true}`} {
			if resp, text := post(t, srv.URL+"/ask", body); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %s", body, resp.Status, text)
			}
		}
	}
}
