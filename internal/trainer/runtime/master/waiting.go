package master

import (
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// Some inputs mean nothing to the coordinator without a hash: a hello of a worker that may hold the master's state, and
// a state that was fetched. They wait for it, and so does all that follows from the same stream.

// mostWaiting is far more than a worker has to say before it is answered.
const mostWaiting = 1000

// ownHash is the hash of the master's state.
type ownHash struct {
	hash      string
	step      int64 // whose state has it; −1 for none
	requested int64 // the newest step whose state's hash was requested
}

// mustWait reports whether an input has to wait, and sees to it that it does not wait in vain.
func (m *Master) mustWait(i *input) bool {
	hello := i.message.GetHello()
	switch {
	case m.waitsFor(i.conn) > 0:
		return true
	case m.conns[i.conn.Worker] != i.conn:
		return false
	case hello != nil && hello.Step == m.core.StateStep():
		return !m.knowsOwnHash()
	case i.state != nil && i.hash == "":
		m.hashFetched(i)
		return true
	}
	return false
}

// waitsFor is how many inputs of a stream wait.
func (m *Master) waitsFor(c *connection) (n int) {
	for _, i := range m.waiting {
		if i.conn == c {
			n++
		}
	}
	return n
}

// wait keeps an input until resume. A worker has nothing to send, and no work to send results of, until its hello is
// answered: what a stream can make the master keep is bounded.
func (m *Master) wait(i *input) {
	c := i.conn
	switch {
	case i.ended != nil && m.helloWaits(c): // it need not be answered
		m.forget(c)
		m.take(i)
	case i.gradient != nil && m.skipFetched(c):
		m.resume()
		m.take(i)
	case i.gradient == nil && m.waitsFor(c) < mostWaiting:
		m.waiting = append(m.waiting, i)
	default:
		if i.gradient != nil {
			m.buffers.Put(i.gradient)
		}
		m.forget(c)
		m.failProtocol(c, "sent results before its hello was answered")
	}
}

// helloWaits reports whether a stream's hello waits.
func (m *Master) helloWaits(c *connection) bool {
	return slices.ContainsFunc(m.waiting, func(i *input) bool { return i.conn == c && i.message.GetHello() != nil })
}

// forget drops what waits of a stream.
func (m *Master) forget(c *connection) {
	m.waiting = slices.DeleteFunc(m.waiting, func(i *input) bool { return i.conn == c })
}

// skipFetched ends the wait for the hash of a worker's state, if there is one. A worker that sends results has been
// assigned work since, so its state is not awaited any more.
func (m *Master) skipFetched(c *connection) (waited bool) {
	for _, i := range m.waiting {
		if i.conn == c && i.state != nil {
			i.hash, waited = "not awaited any more", true
		}
	}
	return waited
}

// resume takes the inputs that need not wait any more, in the order in which they came.
func (m *Master) resume() {
	waiting := m.waiting
	m.waiting = nil
	for _, i := range waiting {
		m.take(i)
	}
}

// knowsOwnHash reports whether the hash of the state is known; otherwise it will be.
func (m *Master) knowsOwnHash() bool {
	step := m.core.StateStep()
	if m.own.step != step && m.own.requested < step {
		m.hashOwn(step)
	}
	return m.own.step == step
}

// hashAt is the hash of the state, if it is of step.
func (m *Master) hashAt(step int64) string {
	if m.own.step != step || m.core.StateStep() != step {
		return ""
	}
	return m.own.hash
}

// hashOwn has the state hashed, which is of step.
func (m *Master) hashOwn(step int64) {
	m.own.requested = step
	m.keeper.hashOwn(func(hash string) {
		if step > m.own.step { // no newer state was adopted meanwhile
			m.own.hash, m.own.step = hash, step
		}
		m.step(coordinator.StateHash{Worker: -1, Step: step, Hash: hash})
	})
}

// hashFetched has a worker's state hashed.
func (m *Master) hashFetched(i *input) {
	if i.hashing {
		return
	}
	i.hashing = true
	m.keeper.hashOf(i.state, func(hash string) { i.hash = hash })
}
