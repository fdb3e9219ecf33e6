package fakekubelet

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

func TestPortForwardIsRejectedWithThePodsAddress(t *testing.T) {
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Status: corev1.PodStatus{PodIP: "127.52.180.88"}}
	if err := pods.Add(pod); err != nil {
		t.Fatal(err)
	}
	s := &kubeletServer{agent: &agent{pods: listers.NewPodLister(pods)}}
	server := httptest.NewServer(s.handler())
	defer server.Close()
	defer server.CloseClientConnections()
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs}}
	for path, want := range map[string]string{
		"/portForward/default/web":       "open http://127.52.180.88:PORT",
		"/portForward/default/web/a-uid": "open http://127.52.180.88:PORT",
		"/portForward/default/gone":      "open http://POD-IP:PORT",
		"/exec/default/web/main":         "simulated nodes do not serve exec: a container is a process",
		"/attach/default/web/a-uid/main": "simulated nodes do not serve attach: a container is a process",
	} {
		address, err := url.Parse(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		overWebsocket, err := portforward.NewSPDYOverWebsocketDialer(address, config)
		if err != nil {
			t.Fatal(err)
		}
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			t.Fatal(err)
		}
		overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, address)
		_, _, websocketError := overWebsocket.Dial(portforward.PortForwardProtocolV1Name)
		_, _, spdyError := overSPDY.Dial(portforward.PortForwardProtocolV1Name)
		for name, err := range map[string]error{"websocket": websocketError, "SPDY": spdyError} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s by %s: the client says %q, which does not hold %q", path, name, err, want)
			}
		}
	}
}

func TestOnlyTheAPIServerAndAdministratorsReadLogsOfANode(t *testing.T) {
	served := authorized(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for name, test := range map[string]struct {
		tls  *tls.ConnectionState
		want int
	}{
		"the API server":              {certificateOf("kube-apiserver-kubelet-client", "system:masters"), http.StatusOK},
		"a user of the cluster":       {certificateOf("elastic-user"), http.StatusForbidden},
		"one who is called like it":   {certificateOf("system:masters"), http.StatusForbidden},
		"who shows no certificate":    {&tls.ConnectionState{}, http.StatusUnauthorized},
		"who does not even speak TLS": {nil, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/containerLogs/default/web/main", nil)
			request.TLS = test.tls
			answer := httptest.NewRecorder()
			served.ServeHTTP(answer, request)
			if answer.Code != test.want || test.want == http.StatusForbidden && !strings.Contains(answer.Body.String(), "kubectl logs") {
				t.Errorf("%d: %s", answer.Code, answer.Body)
			}
		})
	}
}

func certificateOf(name string, groups ...string) *tls.ConnectionState {
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: name, Organization: groups}}}}
}
