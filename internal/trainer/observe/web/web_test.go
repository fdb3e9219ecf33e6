package web_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) (*web.Server, *history.Recorder) {
	t.Helper()
	r := history.NewRecorder(history.Job{Name: "job"})
	s, err := web.Start(t.Context(), "127.0.0.1:0", r, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// answer is what was answered; its body is closed at the test's end.
type answer struct {
	status int
	header http.Header
	body   io.Reader
}

func request(t *testing.T, method, url string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
	t.Cleanup(cancel)
	q, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return answer{response.StatusCode, response.Header, response.Body}
}

func TestPagesMetricsAndHealthAreServedAndNothingElse(t *testing.T) {
	s, r := start(t)
	defer s.Close()
	r.OnStatus(trainingjob.Status{Phase: trainingjob.PhaseRunning})
	for name, test := range map[string]struct {
		method, path string
		status       int
		kind, body   string
	}{
		"the page":                {"GET", "", 200, "text/html; charset=utf-8", "<main"},
		"the metrics":             {"GET", "metrics", 200, "text/plain; version=0.0.4; charset=utf-8", "elastic_trainer_phase"},
		"health":                  {"GET", "healthz", 200, "", "ok"},
		"readiness":               {"GET", "readyz", 200, "", "ok"},
		"another path":            {"GET", "etc/passwd", 404, "", ""},
		"a change of what is not": {"POST", "", 405, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			response := request(t, test.method, s.URL()+test.path)
			body, err := io.ReadAll(response.body)
			if err != nil || response.status != test.status || !strings.Contains(string(body), test.body) {
				t.Errorf("%d, %v: %s", response.status, err, body)
			}
			if kind := response.header.Get("Content-Type"); test.kind != "" && kind != test.kind {
				t.Errorf("content type %q", kind)
			}
			if response.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("what is served may be taken for something else")
			}
		})
	}
	if policy := request(t, "GET", s.URL()).header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy %q", policy)
	}
}

func TestAMasterThatHasNotBegunIsNotReady(t *testing.T) {
	s, _ := start(t)
	defer s.Close()
	if response := request(t, "GET", s.URL()+"readyz"); response.status != http.StatusServiceUnavailable {
		t.Error(response.status)
	}
}

func TestAViewerReceivesChangesAndTheEndOfTheRun(t *testing.T) {
	s, r := start(t)
	response := request(t, "GET", s.URL()+"events")
	if kind := response.header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("content type %q", kind)
	}
	lines := bufio.NewScanner(response.body)
	await := func(what string) {
		t.Helper()
		for lines.Scan() {
			line := lines.Text()
			if line != "" && !strings.HasPrefix(line, "data: ") && !strings.HasPrefix(line, "event: ") {
				t.Fatalf("%q is no line of an event", line)
			}
			if strings.Contains(line, what) {
				return
			}
		}
		t.Fatalf("%q never came: %v", what, lines.Err())
	}
	await("event: message")
	r.OnStatus(trainingjob.Status{Phase: trainingjob.PhaseWaiting, Message: "no\rworkers\nevent: forged"})
	await("workers")
	ended := make(chan struct{})
	go func() { defer close(ended); s.Close() }()
	await("event: end")
	await("</main>")
	for lines.Scan() { //nolint:revive // to the end
	}
	<-ended
}

func TestAnAddressThatIsTakenIsRefused(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = web.Start(t.Context(), l.Addr().String(), history.NewRecorder(history.Job{}), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Error(err)
	}
}

// addressOfThisMachine is one that is neither of its loopback nor of all its networks.
func addressOfThisMachine(t *testing.T) net.IP {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP
		}
	}
	t.Skip("this machine has no IPv4 address besides the loopback, which this test needs")
	return nil
}

func TestASpecificAddressIsTheOnlyOneThatIsServed(t *testing.T) {
	own := addressOfThisMachine(t)
	h := history.NewRecorder(history.Job{Name: "job"})
	for name, test := range map[string]struct {
		start func(context.Context, string, *history.Recorder, *slog.Logger) (*web.Server, error)
		on    string
		there map[string]bool
	}{
		"of a network":                        {web.Start, own.String(), map[string]bool{own.String(): true, "127.0.0.1": false}},
		"of the loopback":                     {web.Start, "127.0.0.1", map[string]bool{own.String(): false, "127.0.0.1": true}},
		"of a pod, whose ports are forwarded": {web.StartInPod, own.String(), map[string]bool{own.String(): true, "127.0.0.1": true, "127.0.0.2": false}},
		"of a simulated node's pod":           {web.StartInPod, "127.0.0.2", map[string]bool{"127.0.0.2": true, "127.0.0.1": false}},
		"of all networks":                     {web.StartInPod, "", map[string]bool{own.String(): true, "127.0.0.1": true}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := test.start(t.Context(), net.JoinHostPort(test.on, "0"), h, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Skipf("not every system has this address: %v", err)
			}
			defer s.Close()
			at, err := url.Parse(s.URL())
			if err != nil {
				t.Fatal(err)
			}
			for host, there := range test.there {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(host, at.Port()))
				if err == nil {
					_ = conn.Close()
				}
				if (err == nil) != there {
					t.Errorf("%s: %v", host, err)
				}
			}
		})
	}
}
