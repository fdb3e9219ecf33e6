// Package webtest asks a trainer's status server, as a browser or Prometheus would.
package webtest

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// Get is what is at a URL. A test for which it is not there fails.
func Get(t testing.TB, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Short)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s (%v)\n%s", url, response.Status, err, body)
	}
	return string(body)
}
