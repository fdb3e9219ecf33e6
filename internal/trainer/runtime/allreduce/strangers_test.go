package allreduce

import (
	"crypto/tls"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

func TestASilentConnectionDoesNotDelayAWorkersEnd(t *testing.T) {
	e, err := New(Config{
		Host: "127.0.0.1", Token: "token", Layout: Layout{Dense: 1}, VirtualWorkers: func(int64) int { return 1 },
		Most: 1, Add: add, Log: slog.New(slog.DiscardHandler),
		server: []grpc.ServerOption{grpc.ConnectionTimeout(24 * time.Hour)}, // who waited for a handshake would not end
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", e.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// A server that answers a later connection has accepted this one.
	secure := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}} //nolint:gosec // it has no credentials
	later, err := secure.DialContext(t.Context(), "tcp", e.Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = later.Close() }()
	closed := make(chan struct{})
	go func() { defer close(closed); e.Close() }()
	select {
	case <-closed:
	case <-time.After(patience.Medium):
		t.Fatal("it waits for the connection")
	}
}
