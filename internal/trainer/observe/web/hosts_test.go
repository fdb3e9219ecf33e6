package web_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web"
)

func TestAPageIsServedUnderNamesThatNoOtherSiteCanHave(t *testing.T) {
	t.Setenv(web.HostsVariable, "jobs.example.com, Other.Example.com")
	s, _ := start(t)
	defer s.Close()
	at, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:" + at.Port(): 200, "10.0.0.7": 200, "[::1]:8080": 200, "localhost:8080": 200, "a.localhost": 200, "digits-master": 200, "digits-master:8080": 200,
		"digits-master.team-a.svc": 200, "digits-master.team-a.svc.cluster.local:8080": 200, "JOBS.example.com": 200, "other.example.com:443": 200,
		"evil.example.com": 421, "evil.example.com:8080": 421, "127.0.0.1.evil.example.com": 421, "svc.evil.com": 421, "evilsvc.com": 421, "x.svc.evil.com": 421,
	} {
		for _, path := range []string{"/", "/metrics", "/events", "/healthz"} {
			if path == "/events" && want == http.StatusOK {
				continue // has no end
			}
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+strings.TrimPrefix(path, "/"), http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			q.Host = host
			response, err := http.DefaultTransport.RoundTrip(q)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err != nil || response.StatusCode != want {
				t.Errorf("%s as %s: %d, expected %d: %v", path, host, response.StatusCode, want, err)
			}
			if want != http.StatusOK && (!strings.Contains(string(body), web.HostsVariable) || !strings.Contains(string(body), fmt.Sprintf("%q", host))) {
				t.Errorf("the refusal does not say what to do: %s", body)
			}
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if _, _, err := net.SplitHostPort(at.Host); err != nil {
		t.Error(err)
	}
}
