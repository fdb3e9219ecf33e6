package wire

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// CountBytes is a server's option: the bytes of messages that it receives and sends, with their framing and without
// TLS's, are added to the two.
func CountBytes(received, sent *atomic.Int64) grpc.ServerOption {
	return grpc.StatsHandler(traffic{received: received, sent: sent})
}

// CountSentBytes is the same for a client, of what it sends.
func CountSentBytes(sent *atomic.Int64) grpc.DialOption {
	return grpc.WithStatsHandler(traffic{received: new(atomic.Int64), sent: sent})
}

type traffic struct{ received, sent *atomic.Int64 }

func (t traffic) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.InPayload:
		t.received.Add(int64(s.WireLength))
	case *stats.OutPayload:
		t.sent.Add(int64(s.WireLength))
	}
}

func (traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (traffic) HandleConn(context.Context, stats.ConnStats)                       {}
