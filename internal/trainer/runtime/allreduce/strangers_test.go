package allreduce

import (
	"crypto/tls"
	"net"
	"testing"
	"time"
)

func TestASilentConnectionDoesNotDelayAWorkersEnd(t *testing.T) {
	all, closed := workers(t, 1, 1, Layout{Dense: 1})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", all[0].Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// A server that answers a later connection has accepted this one.
	secure := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}} //nolint:gosec // it has no credentials
	later, err := secure.DialContext(t.Context(), "tcp", all[0].Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = later.Close() }()
	began := time.Now()
	closed()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
