package cluster

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/test/bufconn"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering is a server whose n-th answer is given by answer(n), and the client's transport.
func answering(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (url string, rt *transport, count func() int) {
	t.Helper()
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(int(n.Add(1)), w, r) }))
	pool := &http.Transport{}
	t.Cleanup(func() { pool.CloseIdleConnections(); server.Close() })
	ample := limits{connect: patience.Medium, read: patience.Medium, write: patience.Medium, budget: patience.Medium}
	return server.URL, &transport{next: pool, limits: ample}, func() int { return int(n.Load()) }
}

func post(t *testing.T, rt *transport, url string) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("the body"))
	if err != nil {
		t.Fatal(err)
	}
	return rt.RoundTrip(request)
}

func readAll(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRequestsThatWereNotProcessedAreSentAgain(t *testing.T) {
	for answer, c := range map[string]struct {
		status int
		body   string
	}{
		"429":                         {http.StatusTooManyRequests, ""},
		"503":                         {http.StatusServiceUnavailable, ""},
		"500 of a webhook that fails": {http.StatusInternalServerError, `failed calling webhook "x": connection refused`},
	} {
		t.Run(answer+" is answered with the same body once more", func(t *testing.T) {
			var bodies []string
			url, rt, _ := answering(t, func(n int, w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				if n < 3 {
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
					return
				}
				_, _ = io.WriteString(w, "done")
			})
			response, err := post(t, rt, url)
			if err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, response); got != "done" {
				t.Errorf("got %q", got)
			}
			if got := strings.Join(bodies, ","); got != "the body,the body,the body" {
				t.Errorf("the server got %q", got)
			}
		})
	}
	t.Run("another 500 is returned as it is, with its whole body", func(t *testing.T) {
		long := strings.Repeat("internal error ", 4000)
		url, rt, count := answering(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, long)
		})
		response, err := post(t, rt, url)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, response); got != long {
			t.Errorf("got %d bytes of %d", len(got), len(long))
		}
		if count() != 1 {
			t.Errorf("sent %d times", count())
		}
	})
	t.Run("when the budget is used up the last answer is returned, without a wish that client-go would fulfil again", func(t *testing.T) {
		url, rt, count := answering(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		rt.limits.budget = time.Second
		response, err := post(t, rt, url)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, response)
		if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") != "" || count() != 1 {
			t.Errorf("status %d, Retry-After %q, sent %d times", response.StatusCode, response.Header.Get("Retry-After"), count())
		}
	})
	t.Run("the end of the context ends the waiting", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("interrupted")
		url, rt, _ := answering(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "15")
			w.WriteHeader(http.StatusServiceUnavailable)
			cancel(reason)
		})
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := rt.RoundTrip(request)
		if err == nil {
			readAll(t, response)
		}
		if !errors.Is(err, reason) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// inBubble is answering without a network, whose waits would stop the clock of a synctest bubble.
func inBubble(t *testing.T, answer http.HandlerFunc) *transport {
	t.Helper()
	network := bufconn.Listen(1 << 16)
	server := &http.Server{Handler: answer} //nolint:gosec // its one client is here
	go func() { _ = server.Serve(network) }()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return network.DialContext(ctx) }
	pool := &http.Transport{DialContext: dial}
	t.Cleanup(func() { pool.CloseIdleConnections(); _ = server.Close() })
	return &transport{next: pool, limits: defaultLimits()}
}

func TestASilentServerIsAnError(t *testing.T) {
	in := func(name string, test func(*testing.T)) { t.Run(name, func(t *testing.T) { synctest.Test(t, test) }) }
	in("when it does not even shake hands, nothing was sent", func(t *testing.T) {
		client, server := net.Pipe()
		defer server.Close()
		pool := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil }}
		defer pool.CloseIdleConnections()
		rt, began := &transport{next: pool, limits: defaultLimits()}, time.Now()
		_, err := post(t, rt, "https://server") //nolint:bodyclose // there is no answer
		var silent *NoAnswerError
		if !errors.As(err, &silent) || silent.Connected || !neverSent(err) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != rt.limits.connect {
			t.Errorf("it took %v", took)
		}
	})
	in("when it takes the request, the request may have been processed", func(t *testing.T) {
		rt, began := inBubble(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}), time.Now()
		_, err := post(t, rt, "http://server") //nolint:bodyclose // there is no answer
		var silent *NoAnswerError
		if !errors.As(err, &silent) || !silent.Connected || neverSent(err) || !ambiguous(err) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != rt.limits.write {
			t.Errorf("it took %v", took)
		}
	})
	in("but a body that comes slowly, as a watch's does, is none", func(t *testing.T) {
		rt := inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
			for range 5 {
				_, _ = io.WriteString(w, "event ")
				w.(http.Flusher).Flush()
				time.Sleep(time.Hour)
			}
		})
		response, err := post(t, rt, "http://server")
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, response); got != strings.Repeat("event ", 5) {
			t.Errorf("got %q", got)
		}
	})
}
