package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// proxy stands between the provider and the API server: it notes every request, and can answer in the server's place.
type proxy struct {
	server *httptest.Server

	mu       sync.Mutex
	requests []string
	fault    func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	config := adminConfig(t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	p := &proxy{}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, describe(r))
		fault := p.fault
		p.mu.Unlock()
		if fault != nil && fault(w, r, forward) {
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// describe is a request as the tests spell it: method, path, and for a patch its kind.
func describe(r *http.Request) string {
	text := r.Method + " " + r.URL.Path
	switch contentType := r.Header.Get("Content-Type"); {
	case strings.HasPrefix(contentType, "application/apply-patch"):
		text += " (apply)"
		if r.URL.Query().Get("force") == "true" {
			text += " (force)"
		}
	case strings.HasPrefix(contentType, "application/json-patch"):
		text += " (json patch)"
	}
	return text
}

// config is the provider's configuration for the cluster behind the proxy.
func (p *proxy) config(lines string) string {
	return fmt.Sprintf("provider \"elastic\" {\n  host = %q\n%s\n}\n", p.server.URL, lines)
}

// setFault makes the proxy call fault first, which reports whether it has answered.
func (p *proxy) setFault(fault func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// take returns the requests since the last take.
func (p *proxy) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.requests
	p.requests = nil
	return taken
}

// drop ends the connection without an answer.
func drop(w http.ResponseWriter) {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}
