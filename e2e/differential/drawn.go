package differential

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A Player plays what may happen in a world again and again, with one scheduler: it decides, and draws, by itself, and the
// order of events is drawn.
type Player struct {
	*process
	world  *Snapshot
	random *rand.Rand
}

// NewPlayer loads a world, with its nodes and pods in an order that is drawn. stop ends the scheduler.
func NewPlayer(ctx context.Context, world *Snapshot, random *rand.Rand) (player *Player, stop func(), err error) {
	cluster := *world
	cluster.Nodes, cluster.Pods = slices.Clone(world.Nodes), slices.DeleteFunc(slices.Clone(world.Pods), isPlanned)
	random.Shuffle(len(cluster.Nodes), func(i, j int) { cluster.Nodes[i], cluster.Nodes[j] = cluster.Nodes[j], cluster.Nodes[i] })
	random.Shuffle(len(cluster.Pods), func(i, j int) { cluster.Pods[i], cluster.Pods[j] = cluster.Pods[j], cluster.Pods[i] })
	ctx, cancel := context.WithCancel(ctx)
	p, err := newProcess(ctx, &cluster)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if err := p.arrange(p.pods); err != nil {
		p.stop(cancel)
		return nil, nil, err
	}
	return &Player{p, world, random}, func() { p.stop(cancel) }, nil
}

// Play has the job be made, and events happen in any order until nothing changes any more: the next pod of the job is created
// and tried, a pod that waits is tried again, a pod that stops is gone, the budgets' controller counts. Then everything is as
// it was.
func (p *Player) Play(ctx context.Context) (Run, error) {
	play := &play{Player: p, tried: map[string]bool{}, changed: map[string]bool{}, evicted: map[string]bool{}}
	for _, budget := range p.world.Budgets {
		play.left = append(play.left, budget.Status.DisruptionsAllowed)
	}
	allowed := slices.Clone(play.left)
	play.written = allowed
	for _, pod := range p.world.Pods {
		if isPlanned(pod) {
			play.planned = append(play.planned, pod)
		}
	}
	for {
		events := play.events()
		if len(events) == 0 {
			break
		}
		if err := events[p.random.IntN(len(events))](ctx); err != nil {
			return Run{}, err
		}
	}
	run := play.run()
	return run, errors.Join(play.restore(ctx), play.write(ctx, allowed))
}

// play is what happens once.
type play struct {
	*Player
	planned []*corev1.Pod
	created int             // how many of them
	tried   map[string]bool // the waiting pods that were tried since something changed
	changed map[string]bool // the pods of the cluster that are not as they were
	evicted map[string]bool
	// left is how many disruptions the budgets allow, as their controller counts them, and written is how many their status
	// says.
	left, written []int32
}

// events are those of which one comes next.
func (p *play) events() (all []func(context.Context) error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var terminating []*corev1.Pod
	for _, pod := range p.pods {
		switch {
		case waits(pod) && !p.tried[nameOf(pod).String()]:
			all = append(all, func(ctx context.Context) error { return p.try(ctx, pod) })
		case pod.DeletionTimestamp != nil:
			terminating = append(terminating, pod)
		}
	}
	if p.mayCreate() {
		all = append(all, p.create)
	}
	if !slices.Equal(p.left, p.written) {
		all = append(all, func(ctx context.Context) error { return p.write(ctx, slices.Clone(p.left)) })
	}
	if len(terminating) > 0 {
		one := terminating[p.random.IntN(len(terminating))]
		all = append(all, func(ctx context.Context) error { return p.end(ctx, one) },
			func(ctx context.Context) error { return p.end(ctx, terminating...) })
	}
	return all
}

// mayCreate reports whether the job creates another pod: one of a later stage when those of the earlier ones run.
func (p *play) mayCreate() bool {
	if p.created == len(p.planned) {
		return false
	}
	hasMaster := slices.ContainsFunc(p.planned, isMaster)
	return !slices.ContainsFunc(p.planned[:p.created], func(pod *corev1.Pod) bool {
		return stageOf(pod, hasMaster) < stageOf(p.planned[p.created], hasMaster) && p.find(pod.Namespace, pod.Name).Spec.NodeName == ""
	})
}

func (p *play) create(ctx context.Context) error {
	pod := p.planned[p.created].DeepCopy()
	p.created++
	if err := p.add(ctx, pod); err != nil {
		return err
	}
	return p.try(ctx, pod)
}

// try has the scheduler decide on a pod.
func (p *play) try(ctx context.Context, pod *corev1.Pod) error {
	nominated, name := pod.Status.NominatedNodeName, nameOf(pod).String()
	if err := p.process.try(ctx, pod); err != nil {
		return err
	}
	for _, victim := range p.deleted {
		if !p.evicted[victim] {
			disrupt(p.world.Budgets, p.left, p.world.pod(victim))
		}
		p.evicted[victim], p.changed[victim] = true, true
	}
	d := p.decision()
	if d.Node != "" || len(d.Victims) > 0 || p.find(pod.Namespace, pod.Name).Status.NominatedNodeName != nominated {
		clear(p.tried)
	}
	p.changed[name], p.tried[name] = true, true
	return nil
}

// write writes how many disruptions the budgets allow.
func (p *play) write(ctx context.Context, allowed []int32) error {
	written := p.written
	p.written = allowed
	clear(p.tried)
	return p.allow(ctx, p.world.Budgets, written, allowed)
}

// end ends pods.
func (p *play) end(ctx context.Context, pods ...*corev1.Pod) error {
	for _, pod := range pods {
		p.changed[nameOf(pod).String()] = true
		if err := p.remove(ctx, pod); err != nil {
			return err
		}
	}
	clear(p.tried)
	return nil
}

func (p *play) run() (r Run) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, pod := range p.planned {
		node := ""
		if i := p.lookUp(pod.Namespace, pod.Name); i >= 0 {
			node = p.pods[i].Spec.NodeName
		}
		r.Nodes = append(r.Nodes, node)
	}
	for name := range p.evicted {
		r.Evicted = append(r.Evicted, name)
	}
	slices.Sort(r.Evicted)
	return r
}

// restore removes the job's pods, and puts the cluster's where they were.
func (p *play) restore(ctx context.Context) error {
	for _, pod := range slices.Clone(p.pods) {
		if isPlanned(pod) || p.changed[nameOf(pod).String()] {
			if err := p.remove(ctx, pod); err != nil {
				return err
			}
		}
	}
	for _, pod := range p.world.Pods {
		if !isPlanned(pod) && p.changed[nameOf(pod).String()] {
			if err := p.add(ctx, pod.DeepCopy()); err != nil {
				return err
			}
		}
	}
	return nil
}
