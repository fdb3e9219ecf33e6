package wire_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// stopTimeout is what the servers of these tests give their streams.
const stopTimeout = 200 * time.Millisecond

// forEver is what these servers give a handshake: one that waited for it would not end.
const forEver = 24 * time.Hour

// visitors are ways to be connected to a server without an end.
var visitors = map[string]func(t *testing.T, address string, c wire.Credentials){
	"a connection on which nothing is said": func(t *testing.T, address string, _ wire.Credentials) { dial(t, address) },
	"half a TLS handshake": func(t *testing.T, address string, _ wire.Credentials) {
		if _, err := dial(t, address).Write([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}); err != nil {
			t.Fatal(err)
		}
	},
	"TLS, and nothing within":           func(t *testing.T, address string, _ wire.Credentials) { shakeHands(t, address) },
	"a stream on which nothing is said": func(t *testing.T, address string, c wire.Credentials) { open(t, address, c) },
	"a stream that is not read": func(t *testing.T, address string, c wire.Credentials) {
		if err := open(t, address, c).SendMsg(&wire.Frame{Message: &wirepb.Message{Kind: &wirepb.Message_Join{Join: &wirepb.Join{}}}}); err != nil {
			t.Fatal(err)
		}
	},
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// shakeHands is TLS with a server; when it is over, the server has accepted all earlier connections too.
func shakeHands(t *testing.T, address string) {
	t.Helper()
	secure := tls.Client(dial(t, address), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // it is a stranger
	if err := secure.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAServerEndsInTimeWhateverIsConnected(t *testing.T) {
	for name, visit := range visitors {
		t.Run(name, func(t *testing.T) {
			c := credentials(t)
			var blocked atomic.Bool
			server, address := start(t, c, func(stream grpc.ServerStream) error {
				f := &wire.Frame{}
				if err := stream.RecvMsg(f); err != nil {
					return err
				}
				f.Release()
				q := wire.NewQueue(1)
				q.SendTensor(&wirepb.Message{Kind: &wirepb.Message_State{State: &wirepb.State{}}}, make([]float32, 8*wire.PieceFloats), nil)
				blocked.Store(true)
				return q.Run(stream.Context(), stream)
			})
			visit(t, address, c)
			shakeHands(t, address)
			if name == "a stream that is not read" {
				eventually.True(t, "the handler's message", blocked.Load)
			}
			stopped := make(chan struct{})
			go func() { defer close(stopped); server.Stop(stopTimeout) }()
			select {
			case <-stopped:
			case <-time.After(patience.Medium):
				t.Fatal("the server waits for it")
			}
		})
	}
}

func TestTheLastWordsOfAServerArriveAlthoughAStrangerIsConnected(t *testing.T) {
	c := credentials(t)
	ending := make(chan struct{})
	var begun atomic.Bool
	server, address := start(t, c, func(stream grpc.ServerStream) error {
		f := &wire.Frame{}
		if err := stream.RecvMsg(f); err != nil {
			return err
		}
		f.Release()
		begun.Store(true)
		<-ending
		return stream.SendMsg(&wire.Frame{Message: &wirepb.Message{Kind: &wirepb.Message_Dismissal{Dismissal: &wirepb.Dismissal{Reason: "finished"}}}})
	})
	dial(t, address)
	stream := open(t, address, c)
	if err := stream.SendMsg(&wire.Frame{Message: &wirepb.Message{Kind: &wirepb.Message_Join{Join: &wirepb.Join{}}}}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the handler", begun.Load)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.Stop(patience.Medium)
	}()
	close(ending)
	f := &wire.Frame{}
	if err := stream.RecvMsg(f); err != nil || f.Message.GetDismissal().GetReason() != "finished" {
		t.Errorf("%v: %v", f.Message, err)
	}
	f.Release()
	if err := stream.RecvMsg(&wire.Frame{}); err != io.EOF { //nolint:errorlint // gRPC returns it as it is
		t.Error(err)
	}
	<-stopped
}

// start runs a server on loopback. It is stopped by the test.
func start(t *testing.T, c wire.Credentials, handle func(grpc.ServerStream) error) (server *wire.Server, address string) {
	t.Helper()
	server, err := wire.NewServer(c, slog.New(slog.DiscardHandler), handle, grpc.ConnectionTimeout(forEver))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop(0)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return server, listener.Addr().String()
}
