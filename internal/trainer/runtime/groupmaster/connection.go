package groupmaster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/group"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// connection is one worker's stream.
type connection struct {
	*wire.Stream
	closing bool // a last message was sent or received; owned by the loop
}

// input is what a stream's goroutine sends to the loop: a message, or the end of the stream.
type input struct {
	conn    *connection
	message *wirepb.Message
	ended   error
}

var errEnded = errors.New("the master has ended")

// serve serves one stream.
func (m *Master) serve(stream grpc.ServerStream) error {
	s, first, err := wire.Accept(stream, 1)
	if err != nil {
		return err
	}
	defer s.End(nil)
	c := &connection{Stream: s}
	if !m.deliver(input{conn: c, message: first}) {
		return errEnded
	}
	return s.Serve(&m.streams, m.ended, func() error { return m.receive(c) }, func(err error) { m.deliver(input{conn: c, ended: err}) })
}

// receive passes messages to the loop until the stream ends. A regular end is io.EOF.
func (m *Master) receive(c *connection) error {
	for {
		message, err := c.Message()
		if err != nil {
			return err
		}
		if !m.deliver(input{conn: c, message: message}) {
			return io.EOF
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
		if m.conns[c.Worker] != c {
			return // replaced by a newer stream of the same worker
		}
		delete(m.conns, c.Worker)
		lost := coordinator.Lost{Worker: c.Worker, Reason: "was lost (its stream broke)", Broken: true}
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
	if m.conns[c.Worker] != c {
		return
	}
	switch k := i.message.Kind.(type) {
	case *wirepb.Message_GroupReady:
		r := k.GroupReady
		delete(m.gaveUp, c.Worker)
		m.step(group.Ready{
			Worker: c.Worker, Held: r.Held, Of: r.Of, Checkpoint: r.Checkpoint, Finishing: r.Finishing, Address: r.Address,
			Running: r.Running, Rank: int(r.Rank), World: int(r.World),
			Identity: group.Identity{Lineage: r.Lineage, Job: r.JobDigest, Numerics: c.Numerics},
		})
	case *wirepb.Message_GroupIdle:
		m.step(group.Idle{
			Worker: c.Worker, Generation: k.GroupIdle.Generation, Held: k.GroupIdle.Held, Of: k.GroupIdle.Of,
			Reason: k.GroupIdle.Reason, Address: k.GroupIdle.Address,
		})
	case *wirepb.Message_GroupReduced:
		r := k.GroupReduced
		m.step(group.Reduced{Worker: c.Worker, Generation: r.Generation, Step: r.Step, LossSum: r.LossSum, Records: int(r.Records)})
	case *wirepb.Message_GroupSaved:
		m.cfg.History.OnCheckpoint()
		m.step(group.Saved{Worker: c.Worker, Step: k.GroupSaved.Step})
	case *wirepb.Message_GroupFinished:
		m.step(group.Finished{Worker: c.Worker})
	case *wirepb.Message_Leaving:
		m.step(coordinator.Leaving{Worker: c.Worker})
	case *wirepb.Message_Problem:
		m.problem(c, k.Problem)
	default:
		m.log.Warn("a worker of a group sent an unexpected message", "worker", c.Worker, "message", fmt.Sprintf("%T", k))
	}
}

func (m *Master) problem(c *connection, p *wirepb.Problem) {
	m.log.Warn("a worker has a problem", "worker", c.Worker, "node", c.Node, "reason", p.Reason)
	if p.Fatal {
		m.step(coordinator.Unhealthy{Reason: fmt.Sprintf("worker %d: %s", c.Worker, p.Reason)})
		return
	}
	c.closing = true
	m.published.WorkerProblem(fmt.Sprintf("worker %d: %s", c.Worker, p.Reason))
	m.gaveUp[c.Worker] = p.Reason
	m.step(coordinator.Lost{Worker: c.Worker, Reason: "gave up: " + p.Reason})
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
		c.End(fmt.Errorf("a newer master, of generation %d, has taken over", join.Generation))
		return
	}
	if old := m.conns[c.Worker]; old != nil {
		old.End(errors.New("the worker has connected anew"))
	}
	m.conns[c.Worker] = c
	files, err := json.Marshal(m.cfg.Job.Files().Training)
	if err != nil {
		panic("groupmaster: " + err.Error()) // a list of names and numbers
	}
	c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Job{Job: &wirepb.Job{
		Generation: m.cfg.Fence.Generation(), JobJson: m.cfg.JobJSON, Model: m.cfg.Job.ModelText, ModelName: m.cfg.ModelName, DataFiles: files,
	}}})
}
