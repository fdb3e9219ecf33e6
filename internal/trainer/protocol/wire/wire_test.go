package wire_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func credentials(t *testing.T) wire.Credentials {
	t.Helper()
	c, err := trainingjob.NewCredentials(rand.Reader, time.Now(), "job-master")
	if err != nil {
		t.Fatal(err)
	}
	return wire.Credentials(c)
}

// serve runs a master's side on loopback and returns its address.
func serve(t *testing.T, c wire.Credentials, handle func(grpc.ServerStream) error) string {
	t.Helper()
	_, address := start(t, c, handle)
	return address
}

func open(t *testing.T, address string, c wire.Credentials) grpc.ClientStream {
	t.Helper()
	conn, err := wire.Dial(address, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), patience.Medium)
	t.Cleanup(cancel)
	stream, err := wire.Open(ctx, conn)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestTensorsArriveAsTheyWereSentWhateverTheirSize(t *testing.T) {
	c := credentials(t)
	sizes := []int{0, 1, 63, wire.PieceFloats - 1, wire.PieceFloats, wire.PieceFloats + 1, 3*wire.PieceFloats + 5}
	address := serve(t, c, func(stream grpc.ServerStream) error {
		q := wire.NewQueue(len(sizes))
		for _, n := range sizes {
			floats := make([]float32, n)
			for i := range floats {
				floats[i] = float32(i) + 0.5
			}
			if !q.SendTensor(&wirepb.Message{Kind: &wirepb.Message_State{State: &wirepb.State{Step: int64(n)}}}, floats, nil) {
				return errors.New("the queue is full")
			}
		}
		q.Close()
		return q.Run(stream.Context(), stream)
	})
	stream := open(t, address, c)
	var assembly wire.Assembly
	for _, n := range sizes {
		var whole []float32
		for whole == nil {
			f := &wire.Frame{}
			if err := stream.RecvMsg(f); err != nil {
				t.Fatal(err)
			}
			state := f.Message.GetState()
			if state.GetStep() != int64(n) {
				t.Fatalf("state %d, expected %d", state.GetStep(), n)
			}
			var err error
			whole, err = assembly.Add(f, state.Piece, n, func() []float32 { return make([]float32, n) })
			f.Release()
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range whole {
			if v != float32(i)+0.5 {
				t.Fatalf("value %d of %d is %v", i, n, v)
			}
		}
	}
	if err := stream.RecvMsg(&wire.Frame{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}

func TestAWorkerWithAWrongTokenIsRejectedWithTheReason(t *testing.T) {
	c := credentials(t)
	address := serve(t, c, func(grpc.ServerStream) error { return errors.New("it was let in") })
	wrong := c
	wrong.Token = strings.Repeat("0", 64)
	err := open(t, address, wrong).RecvMsg(&wire.Frame{})
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "not this job's") {
		t.Errorf("a wrong token: %v", err)
	}
}

func TestAWorkerOfAnotherJobDoesNotTrustThisMaster(t *testing.T) {
	address := serve(t, credentials(t), func(grpc.ServerStream) error { return nil })
	conn, err := wire.Dial(address, credentials(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	stream, err := wire.Open(ctx, conn)
	if err == nil {
		err = stream.RecvMsg(&wire.Frame{})
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another job's master was trusted: %v", err)
	}
}

func TestAFullQueueRefusesTensorsAndTakesMessages(t *testing.T) {
	q := wire.NewQueue(2)
	state := &wirepb.Message{Kind: &wirepb.Message_State{State: &wirepb.State{}}}
	for i := range 2 {
		if !q.SendTensor(state, []float32{1}, nil) {
			t.Fatalf("tensor %d of 2 was refused", i)
		}
	}
	if q.SendTensor(state, []float32{1}, nil) {
		t.Error("a third tensor was queued")
	}
	q.Send(&wirepb.Message{Kind: &wirepb.Message_Dismissal{}})
	q.Drop()
	if !q.SendTensor(state, []float32{1}, nil) {
		t.Error("an emptied queue refuses tensors")
	}
}

func TestPiecesOutOfPlaceAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.IntRange(0, 100).Draw(t, "expected floats")
		piece := &wirepb.Piece{Offset: rapid.Int64Range(-5, 105).Draw(t, "offset"), Total: rapid.Int64Range(-5, 105).Draw(t, "total")}
		if piece.Offset == 0 && piece.Total == int64(want) {
			t.Skip("in place")
		}
		var a wire.Assembly
		if _, err := a.Add(&wire.Frame{}, piece, want, func() []float32 { return make([]float32, want) }); err == nil {
			t.Fatalf("piece %v was taken for %d floats", piece, want)
		}
	})
}

func TestMemoryOfATensorIsAllocatedWhenHalfOfItHasArrived(t *testing.T) {
	const want, pieceFloats = 10, 2
	var allocated bool
	alloc := func() []float32 { allocated = true; return make([]float32, want) }
	received := func(offset int) (*wire.Frame, *wirepb.Piece) {
		floats := make([]float32, pieceFloats)
		for i := range floats {
			floats[i] = float32(offset + i)
		}
		head := []byte{0} // of an empty message
		frame := &wire.Frame{}
		if err := wire.Codec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(append(head, wire.Bytes(floats)...))}, frame); err != nil {
			t.Fatal(err)
		}
		return frame, &wirepb.Piece{Offset: int64(offset), Total: want}
	}
	var a wire.Assembly
	for round := range 2 { // the second is after the first has been taken
		allocated = false
		var whole []float32
		for offset := 0; offset < want; offset += pieceFloats {
			frame, piece := received(offset)
			var err error
			if whole, err = a.Add(frame, piece, want, alloc); err != nil {
				t.Fatal(err)
			}
			frame.Release()
			if half := 2*(offset+pieceFloats) >= want; allocated != half {
				t.Fatalf("round %d: after %d of %d values memory was asked for: %t", round, offset+pieceFloats, want, allocated)
			}
		}
		for i, v := range whole {
			if v != float32(i) {
				t.Fatalf("round %d: value %d is %v", round, i, v)
			}
		}
		if len(whole) != want {
			t.Fatalf("round %d: %d values", round, len(whole))
		}
	}
	nothing := &wire.Frame{}
	if _, err := a.Add(nothing, &wirepb.Piece{Total: want}, want, alloc); err == nil {
		t.Error("a piece without values was taken, and so would be as many as anybody likes")
	}
}

// The codec meets whatever a peer sends.
func FuzzFrame(f *testing.F) {
	codec := wire.Codec()
	for _, m := range []*wire.Frame{
		{Message: &wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{Generation: 3}}}},
		{Message: &wirepb.Message{Kind: &wirepb.Message_Gradient{Gradient: &wirepb.Gradient{Step: 1, Lo: 0, Hi: 2, LossSums: []float64{1, 2}}}}},
	} {
		b, err := codec.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b.Materialize())
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var frame wire.Frame
		if err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &frame); err != nil {
			return
		}
		if frame.Message == nil || 4*frame.FloatsLen() > len(b) {
			t.Fatalf("%d bytes gave %d floats and message %v", len(b), frame.FloatsLen(), frame.Message)
		}
		frame.Release()
	})
}

var _ encoding.CodecV2 = wire.Codec()

func TestAPeerThatDoesNotReadHasOneHeartbeatToReadAfterwards(t *testing.T) {
	q := wire.NewQueue(1)
	for range 1000 {
		q.Urgent(&wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{}}})
	}
	q.Close()
	var sent counter
	if err := q.Run(t.Context(), &sent); err != nil || sent != 1 {
		t.Errorf("%d heartbeats were sent: %v", sent, err)
	}
}

func TestATensorThatIsThrownAwayIsGivenBackToo(t *testing.T) {
	q := wire.NewQueue(1)
	tensor := func() *wirepb.Message { return &wirepb.Message{Kind: &wirepb.Message_Update{Update: &wirepb.Update{}}} }
	back := 0
	given := func() { back++ }
	if !q.SendTensor(tensor(), make([]float32, 3), given) || q.SendTensor(tensor(), make([]float32, 3), given) || back != 0 {
		t.Fatalf("a queue of one tensor: %d given back", back)
	}
	if q.Drop(); back != 1 {
		t.Errorf("after Drop: %d given back", back)
	}
	q.Close()
	if !q.SendTensor(tensor(), make([]float32, 3), given) || back != 2 {
		t.Errorf("after Close: %d given back", back)
	}
}

// counter counts what is sent.
type counter int

func (c *counter) SendMsg(any) error {
	*c++
	return nil
}
