package master

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/gradient"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/reduce"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// receivedGradient is the sum that a Gradient event is about. It is the event's Payload.
type receivedGradient struct {
	span    reduce.Span
	floats  []float32 // the dense sum, then each virtual worker's statistics; nil once the tree has taken it
	rows    []gradient.Rows
	results []nn.Result
}

// take converts a stream's input to an event, unless it has to wait.
func (m *Master) take(i *input) {
	if m.mustWait(i) {
		m.wait(i)
		return
	}
	c := i.conn
	if i.ended != nil {
		if m.conns[c.Worker] != c {
			return // replaced by a newer stream of the same worker
		}
		delete(m.conns, c.Worker)
		if broke := (*protocolError)(nil); !c.closing {
			m.step(coordinator.Lost{Worker: c.Worker, Reason: endReason(i.ended), Fault: errors.As(i.ended, &broke)})
		} else {
			m.step(coordinator.Lost{Worker: c.Worker, Reason: coordinator.LostInOrder})
		}
		return
	}
	if join := i.message.GetJoin(); join != nil {
		m.join(c, join)
		return
	}
	if m.conns[c.Worker] != c {
		if i.gradient != nil {
			m.buffers.Put(i.gradient)
		}
		return
	}
	switch k := i.message.Kind.(type) {
	case *wirepb.Message_Hello:
		h := k.Hello
		c.address, c.certificate = h.Address, h.Certificate
		delete(m.gaveUp, c.Worker)
		m.step(coordinator.Hello{
			Worker: c.Worker, Step: h.Step, Hash: h.Hash, OwnHash: m.hashAt(h.Step),
			Identity: coordinator.Identity{Lineage: h.Lineage, Job: h.JobDigest, Numerics: c.Numerics, Validation: h.Validation},
			Machine:  coordinator.Machine{Node: c.Node, CPU: h.Cpu, Kernel: h.Kernel}, Computed: spans(h.InHand),
		})
	case *wirepb.Message_State:
		if i.state == nil {
			m.log.Warn("a worker sent a state without a request", "worker", c.Worker, "node", c.Node)
			return
		}
		m.step(coordinator.StateFetched{Worker: c.Worker, Step: k.State.Step, Hash: i.hash, Payload: fetchedState{
			floats:      i.state,
			last:        k.State.Last,
			evaluations: fromProto(k.State.Evaluations),
			validation:  k.State.Validation,
		}})
	case *wirepb.Message_Applied:
		m.recordApplied(k.Applied)
		m.step(coordinator.Applied{Worker: c.Worker, Step: k.Applied.Step})
	case *wirepb.Message_Gradient:
		m.takeGradient(c, k.Gradient, i)
	case *wirepb.Message_Evaluated:
		m.takePart(c, k.Evaluated)
	case *wirepb.Message_StateHash:
		m.step(coordinator.StateHash{Worker: c.Worker, Step: k.StateHash.Step, Hash: k.StateHash.Hash})
	case *wirepb.Message_Answer:
		a := k.Answer
		m.step(coordinator.Gradient{Worker: c.Worker, Step: a.Step, Lo: int(a.VirtualWorker), Hi: int(a.VirtualWorker) + 1, Hashes: []uint32{a.Hash}, HashOnly: true})
	case *wirepb.Message_Unreachable:
		u := k.Unreachable
		m.step(coordinator.Unreachable{Worker: c.Worker, Peer: int(u.Peer), Round: u.Round, Reason: u.Reason})
	case *wirepb.Message_Leaving:
		if k.Leaving.AfterStep {
			m.step(coordinator.Leaving{Worker: c.Worker})
			return
		}
		c.closing = true
		m.step(coordinator.Left{Worker: c.Worker})
	case *wirepb.Message_Problem:
		p := k.Problem
		m.log.Warn("a worker has a problem", "worker", c.Worker, "node", c.Node, "reason", p.Reason)
		if p.Fatal {
			m.step(coordinator.Unhealthy{Reason: fmt.Sprintf("worker %d: %s", c.Worker, p.Reason)})
			return
		}
		c.closing = true
		if p.Again {
			m.step(coordinator.Lost{Worker: c.Worker, Reason: "ended its stream: " + p.Reason, Fault: true})
			return
		}
		m.published.WorkerProblem(fmt.Sprintf("worker %d: %s", c.Worker, p.Reason))
		m.gaveUp[c.Worker] = p.Reason
		m.step(coordinator.Lost{Worker: c.Worker, Reason: "gave up: " + p.Reason})
	default:
		m.log.Warn("a worker sent a message that only masters send", "worker", c.Worker, "message", fmt.Sprintf("%T", k))
	}
}

func spans(of []*wirepb.Span) []coordinator.Span {
	var s []coordinator.Span
	for _, span := range of {
		s = append(s, coordinator.Span{Lo: int(span.Lo), Hi: int(span.Hi)})
	}
	return s
}

// withGaveUpReason adds the reason that a worker reported to the end of its pod, which has only an exit code.
func (m *Master) withGaveUpReason(e coordinator.Event) coordinator.Event {
	pod, ok := e.(coordinator.PodChanged)
	if !ok || pod.State != coordinator.PodEnded {
		return e
	}
	if words := m.gaveUp[pod.Worker]; words != "" && !strings.Contains(pod.Reason, words) {
		pod.Reason = strings.TrimPrefix(pod.Reason+": "+words, ": ")
	}
	delete(m.gaveUp, pod.Worker)
	return pod
}

func endReason(err error) string {
	if errors.Is(err, io.EOF) || status.Code(err) == codes.Canceled {
		return "was lost: its stream ended"
	}
	return fmt.Sprintf("was lost: %v", err)
}

// join answers the first message of a stream with the job. Every worker holds the same token, so what a stream claims
// about itself is not trusted where it could harm others: a claim neither takes a connected worker's number, nor ends
// the master.
func (m *Master) join(c *connection, join *wirepb.Join) {
	if g := m.cfg.Fence.Generation(); join.Generation > g {
		// The fence detects by itself whether another master has taken over. A worker that knows of one looks for it.
		m.turnAway(c, fmt.Sprintf("it knows a master of generation %d, and this one of generation %d still holds the job", join.Generation, g))
		return
	}
	if m.conns[c.Worker] != nil {
		// If it is the same worker, its older stream times out within a second, and it connects again.
		m.turnAway(c, fmt.Sprintf("worker %d is connected", c.Worker))
		return
	}
	m.conns[c.Worker] = c
	files := m.cfg.Job.Files()
	c.Queue.Send(&wirepb.Message{Kind: &wirepb.Message_Job{Job: &wirepb.Job{
		Generation: m.cfg.Fence.Generation(), JobJson: m.cfg.JobJSON, Model: m.cfg.Job.ModelText, ModelName: m.cfg.ModelName,
		DataFiles: filesJSON(files.Training), ValidationFiles: filesJSON(files.Validation),
	}}})
}

// turnAway ends a stream before its worker has joined. The worker may connect again.
func (m *Master) turnAway(c *connection, reason string) {
	m.log.Warn("turned a worker's stream away", "worker", c.Worker, "node", c.Node, "reason", reason)
	c.End(errors.New(reason))
}

// filesJSON is a list of files for a message; empty for none.
func filesJSON(files []data.File) []byte {
	if len(files) == 0 {
		return nil
	}
	text, err := json.Marshal(files)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return text
}

// takeGradient passes a gradient to the coordinator. If that accepts it, the tree owns its buffer; otherwise the buffer
// is free.
func (m *Master) takeGradient(c *connection, g *wirepb.Gradient, i *input) {
	received := &receivedGradient{span: reduce.Span{Lo: int(g.Lo), Hi: int(g.Hi)}, floats: i.gradient, rows: i.rows}
	records, counts := m.cfg.Job.Schedule, m.cfg.Job.Metrics.Size()
	for i := range g.LossSums {
		result := nn.Result{LossSum: g.LossSums[i], Counts: g.Counts[i*counts : (i+1)*counts]}
		received.results = append(received.results, result)
	}
	if g.Step == m.core.StepsDone() && g.Step < records.Steps() && !reduce.IsNode(records.Minibatches(g.Step), received.span) {
		m.failProtocol(c, fmt.Sprintf("sent %v, which is no part of the step", received.span))
	} else {
		m.step(coordinator.Gradient{
			Worker:  c.Worker,
			Step:    g.Step,
			Lo:      int(g.Lo),
			Hi:      int(g.Hi),
			Hashes:  g.Hashes,
			Payload: received,
		})
	}
	if received.floats != nil {
		m.buffers.Put(received.floats)
	}
}

// failProtocol ends the stream of a worker that broke the protocol.
func (m *Master) failProtocol(c *connection, reason string) {
	c.closing, c.follows = true, nothing
	c.End(errors.New(reason))
	m.step(coordinator.Lost{Worker: c.Worker, Reason: reason, Fault: true})
}
