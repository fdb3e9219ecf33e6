// Package web serves what people and Prometheus see of a running job: the page, which is kept up to date by server-sent
// events, the metrics, and whether the master is well. It only reads, and whatever becomes of it, training continues.
//
// There is no secret on it and no password to it: it is for those who reach the pod, or this machine. However many they
// are, a page is drawn once a second; and a browser that was led here under another site's name (DNS rebinding) is
// refused.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/openmetrics"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/page"
)

const (
	updateEvery  = time.Second      // between two drawings, for all viewers together
	writeTimeout = 10 * time.Second // a viewer that reads no more is let go
	mostViewers  = 32               // who are kept up to date; a page that is one too many loads itself again
	lastWords    = 2 * time.Second  // for the viewers to see the end
	stuckAfter   = 30 * time.Second // a master's loop ticks ten times a second
)

// Server serves one job's history.
type Server struct {
	history  *history.Recorder
	log      *slog.Logger
	http     *http.Server
	address  net.Addr
	closing  chan struct{}
	viewers  chan struct{} // a place for each
	live     shared[[]byte]
	body     shared[string]
	numbers  shared[[]byte]
	last     func() string // the page at the end
	serving  sync.WaitGroup
	closeAll context.CancelFunc
}

// Start listens on an address, and on no other one, and serves until Close.
func Start(ctx context.Context, address string, h *history.Recorder, log *slog.Logger) (*Server, error) {
	listener, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	return serve(ctx, listener, h, log), nil
}

// StartInPod is Start for the address of a pod. A port that is forwarded by kubectl comes by the pod's loopback, so
// that the same port is served there, too. Where somebody else has it, on the network of a node, it is not.
func StartInPod(ctx context.Context, address string, h *history.Recorder, log *slog.Logger) (*Server, error) {
	s, err := Start(ctx, address, h, log)
	if err != nil {
		return nil, err
	}
	if besides := loopback(s.address.String()); besides != "" {
		listener, err := listen(ctx, besides)
		if err != nil {
			log.Warn("the job's page and metrics cannot be reached by kubectl port-forward", "error", err)
			return s, nil
		}
		s.serve(listener)
	}
	return s, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the job's page and metrics on %s: %w", address, err)
	}
	return listener, nil
}

// serve makes a server of the first address that it listens on.
func serve(ctx context.Context, listener net.Listener, h *history.Recorder, log *slog.Logger) *Server {
	s := &Server{history: h, log: log, address: listener.Addr(), closing: make(chan struct{}), viewers: make(chan struct{}, mostViewers)}
	s.live.make = func() []byte { return page.Live(h.Snapshot(), time.Now()) }
	s.body.make = func() string { return page.Body(h.Snapshot(), time.Now()) }
	s.numbers.make = func() []byte { return numbers(h.Snapshot()) }
	s.last = sync.OnceValue(s.body.make)
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.closeAll = cancel
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base }, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.serve(listener)
	return s
}

func (s *Server) serve(listener net.Listener) {
	s.serving.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Warn("stopped serving the status page and metrics", "address", listener.Addr().String(), "error", err)
		}
	})
}

// loopback is the same port on the loopback of an address's family; "" for an address that the loopback is part of
// already.
func loopback(address string) string {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	switch {
	case err != nil || ip == nil || ip.IsLoopback() || ip.IsUnspecified():
		return ""
	case ip.To4() != nil:
		return net.JoinHostPort("127.0.0.1", port)
	}
	return net.JoinHostPort("::1", port)
}

// URL is where the page is, as seen from this machine.
func (s *Server) URL() string {
	host, port, err := net.SplitHostPort(s.address.String())
	if err != nil {
		return "http://" + s.address.String() + "/"
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

// Close shows the end to those who watch, and ends.
func (s *Server) Close() {
	close(s.closing)
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.closeAll()
		_ = s.http.Close()
	}
	s.closeAll()
	s.serving.Wait()
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET "+page.EventsPath, s.events)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /healthz", s.healthy)
	mux.HandleFunc("GET /readyz", s.ready)
	hosts := hostsFromEnvironment()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hosts.allow(r.Host) {
			http.Error(w, hosts.refusal(r.Host), http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

// timed lets go of a client that does not read.
func timed(w http.ResponseWriter) *http.ResponseController {
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) // of a connection that has just gone
	return c
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	timed(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", page.Policy+"; frame-ancestors 'none'")
	_, _ = w.Write(s.live.get())
}

func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	timed(w)
	w.Header().Set("Content-Type", openmetrics.ContentType)
	_, _ = w.Write(s.numbers.get())
}

func numbers(h *history.History) []byte {
	var text bytes.Buffer
	if err := openmetrics.Write(&text, h); err != nil {
		panic(err) // a buffer takes everything
	}
	return text.Bytes()
}

// healthy reports whether the master's loop continues.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) {
	timed(w)
	if silent := time.Since(s.history.LastTick()); silent > stuckAfter {
		http.Error(w, fmt.Sprintf("the master has done nothing for %s", silent.Round(time.Second)), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// ready reports whether the master has begun: it has a state, and takes workers in.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	timed(w)
	if s.history.Snapshot().Status.Phase == "" {
		http.Error(w, "the master has not begun", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// events sends what has changed of the page, once a second, and when the run ends that there is nothing to come.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		http.Error(w, fmt.Sprintf("%d viewers are kept up to date already; load the page again", mostViewers), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(updateEvery)
	defer ticker.Stop()
	for {
		if err := send(w, "message", s.body.get()); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		case <-s.closing:
			_ = send(w, "end", s.last()) // the client may have gone
			return
		}
	}
}

// send writes one event, whose data is as many lines as the text.
func send(w http.ResponseWriter, event, text string) error {
	text = strings.ReplaceAll(text, "\r", " ") // would end a line too
	c := timed(w)
	var message strings.Builder
	fmt.Fprintf(&message, "event: %s\n", event)
	for line := range strings.Lines(text) {
		fmt.Fprintf(&message, "data: %s\n", strings.TrimSuffix(line, "\n"))
	}
	message.WriteString("\n")
	if _, err := w.Write([]byte(message.String())); err != nil {
		return err
	}
	return c.Flush()
}

// shared is something that is made at most once in updateEvery, for all who ask: drawing takes the time of a training
// step, and clients of the port may send as many requests as they like.
type shared[T any] struct {
	make func() T

	mu    sync.Mutex
	at    time.Time // when value was made
	value T
}

func (s *shared[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= updateEvery {
		s.value, s.at = s.make(), time.Now()
	}
	return s.value
}
