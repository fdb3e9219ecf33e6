package providertest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/clientcmd"
)

// Recorder stands between an API server and those who use it under one account, and remembers which rights their
// requests need, as the API server understands them.
type Recorder struct {
	URL string // plain http on the loopback

	mu       sync.Mutex
	requests []authorizationv1.ResourceAttributes
}

// NewRecorder serves until the test ends. Every client of it has the token's rights.
func NewRecorder(t *testing.T, kubeconfig, token string) *Recorder {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	r := &Recorder{}
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(server)
			p.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if info, err := infos.NewRequestInfo(q); err == nil && info.IsResourceRequest {
			r.mu.Lock()
			r.requests = append(r.requests, authorizationv1.ResourceAttributes{
				Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
				Namespace: info.Namespace, Name: info.Name,
			})
			r.mu.Unlock()
		}
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		transport.CloseIdleConnections()
	})
	r.URL = front.URL
	return r
}

// Of are the requests in a namespace with a verb on a resource, "pods" or "pods/log".
func (r *Recorder) Of(namespace, verb, group, resource string) (of []authorizationv1.ResourceAttributes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.requests {
		name := a.Resource
		if a.Subresource != "" {
			name += "/" + a.Subresource
		}
		if a.Namespace == namespace && a.Verb == verb && a.Group == group && name == resource {
			of = append(of, a)
		}
	}
	return of
}
