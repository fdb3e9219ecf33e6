package trainingjob

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"regexp"
	"testing"
	"time"
)

func TestNewCredentials(t *testing.T) {
	now := time.Now()
	c, err := NewCredentials(rand.Reader, now, "low-prio-job-master")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(c.Certificate, c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	handshake := func(t *testing.T, roots []byte, name string) error {
		t.Helper()
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(roots)
		listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			if conn, err := listener.Accept(); err == nil {
				_ = conn.(*tls.Conn).Handshake()
				_ = conn.Close()
			}
		}()
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool, ServerName: name})
		if err == nil {
			_ = conn.Close()
		}
		_ = listener.Close()
		<-served
		return err
	}
	t.Run("a worker that holds the certificate trusts the master under its name", func(t *testing.T) {
		if err := handshake(t, c.Certificate, "low-prio-job-master"); err != nil {
			t.Error(err)
		}
	})
	t.Run("not under another name, and not with another job's certificate", func(t *testing.T) {
		if err := handshake(t, c.Certificate, "high-prio-job-master"); err == nil {
			t.Error("the name is not checked")
		}
		other, err := NewCredentials(rand.Reader, now, "low-prio-job-master")
		if err != nil {
			t.Fatal(err)
		}
		if err := handshake(t, other.Certificate, "low-prio-job-master"); err == nil {
			t.Error("another job's certificate is accepted")
		}
		if other.Token == c.Token {
			t.Error("two jobs have one token")
		}
	})
	t.Run("it is valid for ten years, on nodes whose clocks differ too", func(t *testing.T) {
		leaf := pair.Leaf
		if leaf.NotBefore.After(now.Add(-time.Minute)) || leaf.NotAfter.Before(now.AddDate(10, 0, -1)) {
			t.Errorf("valid from %s to %s", leaf.NotBefore, leaf.NotAfter)
		}
	})
	t.Run("the token is 256 bits in hexadecimal", func(t *testing.T) {
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(c.Token) {
			t.Errorf("%d characters", len(c.Token))
		}
	})
	t.Run("without a name there is no certificate", func(t *testing.T) {
		if _, err := NewCredentials(rand.Reader, now); err == nil {
			t.Error("no error")
		}
	})
}
