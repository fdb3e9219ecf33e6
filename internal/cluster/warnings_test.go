package cluster

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWarningsOfTheServerAreCollectedOnceEachByTheRequestsContext(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "the first"`)
		w.Header().Add("Warning", `299 - "the second"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}`)
	}))
	defer server.Close()
	client, err := New(Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.http.CloseIdleConnections()
	one, ofOne := CollectWarnings(t.Context())
	_, ofOther := CollectWarnings(t.Context())
	for range 2 {
		if _, err := client.Kubernetes().CoreV1().Namespaces().Get(one, "n", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := ofOne.Texts(); !slices.Equal(got, []string{"the first", "the second"}) {
		t.Errorf("collected %q", got)
	}
	if got := ofOther.Texts(); len(got) > 0 {
		t.Errorf("another operation's warnings: %q", got)
	}
}
