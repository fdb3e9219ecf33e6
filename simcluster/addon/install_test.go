package addon

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestAnObjectIsAppliedAgainWhenTheServerRunsOutOfTime(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if requests++; requests == 1 {
			status := apierrors.NewTimeoutError("request did not complete within requested timeout", 0).Status()
			w.WriteHeader(int(status.Code))
			if err := json.NewEncoder(w).Encode(status); err != nil {
				t.Error(err)
			}
			return
		}
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "ray"}}}
	if err := apply(t.Context(), client, object); err != nil || requests != 2 {
		t.Errorf("got %v after %d requests", err, requests)
	}
}
