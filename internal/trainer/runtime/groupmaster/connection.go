package groupmaster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// streams are the goroutines of all streams.
type streams = sync.WaitGroup

// connection is one worker's stream.
type connection struct {
	worker   int
	node     string
	numerics int
	queue    *wire.Queue
	end      context.CancelCauseFunc // ends the stream at once, even while it sends
	heard    atomic.Bool
	closing  bool // a last message was sent or received; owned by the loop
}

// input is what a stream's goroutine sends to the loop: a message, or the end of the stream.
type input struct {
	conn    *connection
	message *wirepb.Message
	ended   error
}

var errEnded = errors.New("the master has ended")

// serve serves one stream: one goroutine sends what the loop has queued, and another receives.
func (m *Master) serve(stream grpc.ServerStream) error {
	ctx, end := context.WithCancelCause(stream.Context())
	defer end(nil)
	first, err := receive(stream)
	if err != nil {
		return err
	}
	join := first.GetJoin()
	if join == nil {
		return fmt.Errorf("a worker began with %T", first.Kind)
	}
	c := &connection{worker: int(join.Worker), node: join.Node, numerics: int(join.Numerics), queue: wire.NewQueue(1), end: end}
	if !m.deliver(input{conn: c, message: first}) {
		return errEnded
	}
	m.streams.Go(func() {
		select {
		case <-m.ended: // send what is queued, and then end the stream
			c.queue.Close()
		case <-ctx.Done():
		}
	})
	m.streams.Go(func() { end(c.queue.Run(ctx, stream)) })
	m.streams.Go(func() {
		var err error
		for err == nil {
			var message *wirepb.Message
			if message, err = receiveFor(stream, c); err == nil && !m.deliver(input{conn: c, message: message}) {
				err = io.EOF
			}
		}
		end(err)
		m.deliver(input{conn: c, ended: err})
	})
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		return status.Error(codes.Aborted, err.Error())
	}
	return nil
}

// receive is the next message that is not a heartbeat.
func receive(stream grpc.ServerStream) (*wirepb.Message, error) {
	return receiveFor(stream, &connection{})
}

func receiveFor(stream grpc.ServerStream, c *connection) (*wirepb.Message, error) {
	for {
		f := &wire.Frame{}
		if err := stream.RecvMsg(f); err != nil {
			return nil, err
		}
		f.Release()
		c.heard.Store(true)
		if f.Message.GetHeartbeat() == nil {
			return f.Message, nil
		}
	}
}

// deliver passes an input to the loop, unless the loop has ended.
func (m *Master) deliver(i input) bool {
	select {
	case m.in <- i:
		return true
	case <-m.ended:
		return false
	}
}

// take converts a stream's input to an event.
func (m *Master) take(i input) {
	c := i.conn
	if i.ended != nil {
		if m.conns[c.worker] != c {
			return // replaced by a newer stream of the same worker
		}
		delete(m.conns, c.worker)
		lost := coordinator.Lost{Worker: c.worker, Reason: "was lost (its stream broke)", Broken: true}
		if c.closing || errors.Is(i.ended, io.EOF) {
			lost.Reason, lost.Broken = coordinator.LostInOrder, false
		}
		m.step(lost)
		return
	}
	if join := i.message.GetJoin(); join != nil {
		m.join(c, join)
		return
	}
	if m.conns[c.worker] != c {
		return
	}
	switch k := i.message.Kind.(type) {
	case *wirepb.Message_GroupReady:
		r := k.GroupReady
		delete(m.gaveUp, c.worker)
		m.step(group.Ready{
			Worker: c.worker, Held: r.Held, Of: r.Of, Checkpoint: r.Checkpoint, Finishing: r.Finishing, Address: r.Address,
			Running: r.Running, Rank: int(r.Rank), World: int(r.World),
			Identity: group.Identity{Lineage: r.Lineage, Job: r.JobDigest, Numerics: c.numerics},
		})
	case *wirepb.Message_GroupIdle:
		m.step(group.Idle{Worker: c.worker, Generation: k.GroupIdle.Generation, Held: k.GroupIdle.Held, Of: k.GroupIdle.Of, Reason: k.GroupIdle.Reason, Address: k.GroupIdle.Address})
	case *wirepb.Message_GroupReduced:
		r := k.GroupReduced
		m.step(group.Reduced{Worker: c.worker, Generation: r.Generation, Step: r.Step, LossSum: r.LossSum, Records: int(r.Records)})
	case *wirepb.Message_GroupSaved:
		m.cfg.History.OnCheckpoint()
		m.step(group.Saved{Worker: c.worker, Step: k.GroupSaved.Step})
	case *wirepb.Message_GroupFinished:
		m.step(group.Finished{Worker: c.worker})
	case *wirepb.Message_Leaving:
		m.step(coordinator.Leaving{Worker: c.worker})
	case *wirepb.Message_Problem:
		m.problem(c, k.Problem)
	default:
		m.log.Warn("a worker of a group sent an unexpected message", "worker", c.worker, "message", fmt.Sprintf("%T", k))
	}
}

func (m *Master) problem(c *connection, p *wirepb.Problem) {
	m.log.Warn("a worker has a problem", "worker", c.worker, "node", c.node, "reason", p.Reason)
	if p.Fatal {
		m.step(coordinator.Unhealthy{Reason: fmt.Sprintf("worker %d: %s", c.worker, p.Reason)})
		return
	}
	c.closing = true
	m.publishNotice(coordinator.Notice{Warning: true, Reason: "WorkerProblem", Message: fmt.Sprintf("worker %d: %s", c.worker, p.Reason)})
	m.gaveUp[c.worker] = p.Reason
	m.step(coordinator.Lost{Worker: c.worker, Reason: "gave up: " + p.Reason})
}

// withGaveUpReason adds the reason that a worker reported to the end of its pod, which has only an exit code.
func (m *Master) withGaveUpReason(e coordinator.Event) coordinator.Event {
	pod, ok := e.(coordinator.PodChanged)
	if !ok || pod.State != coordinator.PodEnded {
		return e
	}
	if words := m.gaveUp[pod.Worker]; words != "" {
		pod.Reason = words
	}
	delete(m.gaveUp, pod.Worker)
	return pod
}

// join answers a new stream with the job.
func (m *Master) join(c *connection, join *wirepb.Join) {
	if join.Generation > m.cfg.Fence.Generation() {
		c.end(fmt.Errorf("a newer master, of generation %d, has taken over", join.Generation))
		return
	}
	if old := m.conns[c.worker]; old != nil {
		old.end(errors.New("the worker has connected anew"))
	}
	m.conns[c.worker] = c
	files, err := json.Marshal(m.cfg.Job.Files().Training)
	if err != nil {
		panic("groupmaster: " + err.Error()) // a list of names and numbers
	}
	c.queue.Send(&wirepb.Message{Kind: &wirepb.Message_Job{Job: &wirepb.Job{
		Generation: m.cfg.Fence.Generation(), JobJson: m.cfg.JobJSON, Model: m.cfg.Job.ModelText, ModelName: m.cfg.ModelName, DataFiles: files,
	}}})
}

// collectHeartbeats lists the workers from which a frame came since the last call.
func (m *Master) collectHeartbeats() []int {
	var ids []int
	for id, c := range m.conns {
		if c.heard.Swap(false) {
			ids = append(ids, id)
		}
	}
	return ids
}

// sendHeartbeats sends a heartbeat to every worker.
func (m *Master) sendHeartbeats() {
	for _, c := range m.conns {
		c.queue.Urgent(&wirepb.Message{Kind: &wirepb.Message_Heartbeat{Heartbeat: &wirepb.Heartbeat{Generation: m.cfg.Fence.Generation()}}})
	}
}
