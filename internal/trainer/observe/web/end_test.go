package web

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/history"
)

func TestNobodyWhoIsConnectedHoldsTheEndUp(t *testing.T) {
	for name, says := range map[string]string{
		"a viewer who does not read":            "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a connection on which nothing is said": "",
		"half a request":                        "GET /metrics HT",
		"a request whose answer is not read":    strings.Repeat("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := bufconn.Listen(1 << 10) // which holds no page
				s := serve(t.Context(), network, history.NewRecorder(history.Job{Name: "job"}), slog.New(slog.DiscardHandler))
				conn, err := network.DialContext(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go func() { _, _ = io.WriteString(conn, says) }()
				synctest.Wait() // the server has read what it will read
				began := time.Now()
				s.Close()
				if took := time.Since(began); took > lastWords {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
