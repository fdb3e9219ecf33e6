package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// html answers as a web server does that has none of these pages.
func html(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Server", "nginx/1.27.0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}
}

func TestAServerThatIsNoAPIServerIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		answers  http.HandlerFunc
		wantText string
	}{
		"404 to everything":    {html(http.StatusNotFound, "<html>404</html>"), "404 Not Found (text/html, server nginx/1.27.0)"},
		"pages to everything":  {html(http.StatusOK, "<html>welcome</html>"), "200 OK (text/html, server nginx/1.27.0)"},
		"405 to a POST":        {html(http.StatusMethodNotAllowed, "<html>405</html>"), "405 Method Not Allowed (text/html"},
		"a login for everyone": {html(http.StatusForbidden, "<html>log in</html>"), "403 Forbidden (text/html"},
		"an empty answer":      {func(http.ResponseWriter, *http.Request) {}, "200 OK (an empty body)"},
		"another JSON API": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error":"not found"}`))
		}, "404 Not Found (application/json)"},
		"a redirect to a login": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/login" {
				html(http.StatusOK, "<html>log in</html>")(w, r)
				return
			}
			http.Redirect(w, r, "/login?back="+r.URL.Path, http.StatusFound)
		}, "200 OK (text/html, server nginx/1.27.0), after a redirect to http://"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answers)
			defer server.Close()
			expectNotAPIServer(t, server.URL, c.wantText)
		})
	}
}

// TestAServerThatSpeaksAnotherProtocolIsNamed has servers that hang up, and that speak first.
func TestAServerThatSpeaksAnotherProtocolIsNamed(t *testing.T) {
	for name, answer := range map[string]string{"it hangs up": "", "it is no HTTP server": "SSH-2.0-OpenSSH_9.9\r\n"} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close() //nolint:errcheck // it ends with the test
			go func() {
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = connection.Read(make([]byte, 4096)) // else the kernel says that it was not read
					_, _ = connection.Write([]byte(answer))
					_ = connection.Close()
				}
			}()
			expectNotAPIServer(t, "http://"+listener.Addr().String(), "no HTTP answer")
		})
	}
}

func expectNotAPIServer(t *testing.T, host, wantText string) {
	t.Helper()
	client, err := New(Config{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	jobs := client.Kubernetes().BatchV1().Jobs("default")
	_, read := Get(t.Context(), client, jobs, "x")
	_, made := Create(t.Context(), client, jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	for _, err := range []error{read, made} {
		_, detail := Explain(err)
		if !strings.Contains(detail, "The server at "+host+" is not a Kubernetes API server: it answers GET /version with ") ||
			!strings.Contains(detail, wantText) || !strings.Contains(detail, "host (or KUBE_HOST)") {
			t.Errorf("%v: %s", err, detail)
		}
		if apierrors.IsNotFound(err) || IsNotServed(err) {
			t.Errorf("it says that the object or its kind is not there: %v", err)
		}
	}
}

// TestAnAPIServersOwnAnswersAreBelieved has an API server that does not know a group, and one that does not
// return its version.
func TestAnAPIServersOwnAnswersAreBelieved(t *testing.T) {
	for name, version := range map[string]string{
		"with its version": `{"major":"1","minor":"36","gitVersion":"v1.36.1"}`,
		"with no version":  `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`,
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					requests++
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprint(w, version)
					return
				}
				http.Error(w, "404 page not found", http.StatusNotFound) // as an API server says it
			}))
			defer server.Close()
			client, err := New(Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := Get(t.Context(), client, client.Kueue().LocalQueues("default"), "x"); !IsNotServed(err) {
					t.Errorf("%v", err)
				}
			}
			if requests != 1 {
				t.Errorf("it was asked for its version %d times", requests)
			}
		})
	}
}

func TestWhereAnAddressComesFrom(t *testing.T) {
	for want, c := range map[string]Config{
		"host (or KUBE_HOST)":                              {Host: "https://x", Kubeconfigs: []string{"/k"}},
		"the kubeconfig /k":                                {Kubeconfigs: []string{"/k"}},
		"the kubeconfig /a, /b, context staging":           {Kubeconfigs: []string{"/a", "/b"}, Context: "staging"},
		"in_cluster (KUBERNETES_SERVICE_HOST of this pod)": {InCluster: true},
	} {
		if got := c.source(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestWhatHappenedOnTheWayIsNoForeignAnswer(t *testing.T) {
	for _, err := range []error{
		context.Canceled, context.DeadlineExceeded, &NoAnswerError{}, &net.OpError{Op: "dial", Err: errors.New("refused")}, &RecreatedError{}, &WrongClusterError{},
	} {
		if isForeign(err) {
			t.Errorf("%v", err)
		}
	}
}
