package master

import (
	"errors"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire/wirepb"
)

// following is which updates a worker is sent.
type following int

const (
	nothing     following = iota
	awaitsState           // then everything
	everything
)

// joins is how the state reaches workers that join. They share one version of it: ten that join at ten steps cost the
// memory of one state more, not of ten.
type joins struct {
	requested bool     // the keeper has been asked for the state
	version   *version // the newest that was sent; nil once all have received it
}

// sendState has a worker sent the state, and from then on every update.
func (m *Master) sendState(id int) {
	if c := m.conns[id]; c != nil {
		c.follows = awaitsState
		m.shareState()
	}
}

// shareState sends the state to the workers that await it. While an older version is on its way to others they are sent
// that one and the updates since, and where these are not retained they wait until its memory is free.
func (m *Master) shareState() {
	if m.joins.requested || len(m.awaitingState()) == 0 {
		return
	}
	if v := m.joins.version; v != nil && v.step != m.core.StateStep() && v.retain() {
		m.distribute(v)
		return
	}
	m.joins.requested = true
	m.keeper.lend(func(v *version) {
		m.keeper.result(func() {
			m.joins.requested, m.joins.version = false, v
			m.distribute(v)
		})
	})
}

// distribute sends a version to the workers that await the state, if it can be followed by the updates since. It
// releases the version, and shareState follows when all have received it.
func (m *Master) distribute(v *version) {
	defer m.keeper.release(v)
	if !m.retainsUpdatesFrom(v.step) {
		return
	}
	for _, c := range m.awaitingState() {
		m.sendVersion(c, v)
		m.sendUpdates(c.Worker, v.step)
	}
}

func (m *Master) sendVersion(c *connection, v *version) {
	v.retain() // distribute holds it
	c.receiving.Add(1)
	release := func() {
		c.receiving.Add(-1)
		m.keeper.release(v)
	}
	message := &wirepb.Message{Kind: &wirepb.Message_State{State: &wirepb.State{
		Step: v.step, Last: measured(m.last), Evaluations: toProto(m.evaluations.all), Validation: m.cfg.Job.Identity.Validation,
	}}}
	if !c.Queue.SendTensor(message, v.floats, release) { // it has been sent other states lately, and reads none of them
		release()
	}
}

// stalledTicks is how long a worker that is being sent the state may read nothing of it while others wait, in ticks: 5 s
// suit a data centre.
const stalledTicks = 50

// endStalled ends the streams of workers that are alive, read nothing of the state that they are being sent, and thereby
// keep others from receiving theirs.
func (m *Master) endStalled() {
	if !slices.ContainsFunc(m.awaitingState(), func(c *connection) bool { return c.receiving.Load() == 0 }) {
		return
	}
	for _, c := range m.conns {
		frames := c.Queue.Frames()
		if c.receiving.Load() == 0 || frames != c.frames {
			c.frames, c.stalled = frames, 0
			continue
		}
		if c.stalled++; c.stalled == m.cfg.SilentTicks(stalledTicks) {
			c.End(errors.New("it reads nothing of the state that it is being sent, and others wait for theirs"))
		}
	}
}

// versionFreed follows the last reader of a version.
func (m *Master) versionFreed() {
	if v := m.joins.version; v != nil && v.readers.Load() == 0 {
		m.joins.version = nil
	}
	m.shareState()
}

func (m *Master) awaitingState() (those []*connection) {
	for _, c := range m.conns {
		if c.follows == awaitsState {
			those = append(those, c)
		}
	}
	return those
}

// retainsUpdatesFrom reports whether the updates of all steps from this one on are retained, of which there may be none.
func (m *Master) retainsUpdatesFrom(step int64) bool {
	return step == m.core.StateStep() || slices.ContainsFunc(m.updates, func(u update) bool { return u.step == step })
}
