package differential

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// choice records the options of the scheduler, without a change to its choice: it reads the total scores of nodes from
// the log, and the candidates of a preemption where the scheduler calls its plugin for additional criteria.
type choice struct {
	plugin *defaultpreemption.DefaultPreemption

	mutex      sync.Mutex
	scores     map[string]int64
	candidates map[string]*extenderv1.Victims
}

// watch puts c between the preemption's evaluator and its plugin.
func (c *choice) watch(s *scheduler.Scheduler) error {
	for _, plugin := range s.Profiles[corev1.DefaultSchedulerName].PreEnqueuePlugins() {
		if preempting, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
			c.plugin = preempting
			preempting.Evaluator.Interface = observed{preempting.Evaluator.Interface, c}
			return nil
		}
	}
	return errors.New("the scheduler's profile has no DefaultPreemption")
}

func (c *choice) forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.scores, c.candidates = map[string]int64{}, nil
}

// observed is the plugin, with an eye on the candidates.
type observed struct {
	preemption.Interface
	choice *choice
}

// CandidatesToVictimsMap is called when there is more than one candidate.
func (o observed) CandidatesToVictimsMap(candidates []preemption.Candidate) map[string]*extenderv1.Victims {
	victims := o.Interface.CandidatesToVictimsMap(candidates)
	o.choice.mutex.Lock()
	defer o.choice.mutex.Unlock()
	o.choice.candidates = victims
	return victims
}

// draws is how often the scheduler's own selection runs on the candidates. It takes the first of those that are equal
// in the iteration order of a map, which is random: the chance that one of eight is never first in so many draws is
// 8e-12.
const draws = 240

// equals are the decisions between which the scheduler has no preference; nil where there is but one.
func (c *choice) equals(ctx context.Context) []Decision {
	c.mutex.Lock()
	candidates, scores := c.candidates, c.scores
	c.mutex.Unlock()
	var equal []Decision
	if len(candidates) > 0 {
		var list []preemption.Candidate
		for name, victims := range candidates {
			list = append(list, candidate{name, victims})
		}
		drawn := map[string]*extenderv1.Victims{}
		for range draws {
			chosen := c.plugin.Evaluator.SelectCandidate(ctx, list)
			drawn[chosen.Name()] = chosen.Victims()
		}
		for name, victims := range drawn {
			equal = append(equal, Decision{Nominated: name, Victims: evicted(victims.Pods)})
		}
	} else {
		var best int64
		for _, score := range scores {
			best = max(best, score)
		}
		for name, score := range scores {
			if score == best {
				equal = append(equal, Decision{Node: name})
			}
		}
	}
	if len(equal) < 2 {
		return nil
	}
	slices.SortFunc(equal, compareDecisions)
	return equal
}

// compared are the victims on each of the nodes that the scheduler compares for a preemption.
func (c *choice) compared() map[string][]string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	on := map[string][]string{}
	for node, victims := range c.candidates {
		on[node] = evicted(victims.Pods)
	}
	return on
}

// evicted are the names of those of the victims that are not being deleted already.
func evicted(victims []*corev1.Pod) []string {
	var names []string
	for _, pod := range victims {
		if pod.DeletionTimestamp == nil {
			names = append(names, nameOf(pod).String())
		}
	}
	slices.Sort(names)
	return names
}

// candidate is one of the scheduler's candidates, for its own selection.
type candidate struct {
	name    string
	victims *extenderv1.Victims
}

func (c candidate) Name() string                 { return c.name }
func (c candidate) Victims() *extenderv1.Victims { return c.victims }

// NumPodGroupDisruptions is 0: no snapshot has pod groups. kube-scheduler has it from 1.37.
func (c candidate) NumPodGroupDisruptions() int { return 0 }

// choice is the sink of the scheduler's log, which contains every node's score at level 10.
var _ logr.LogSink = (*choice)(nil)

const scoreLevel = 10

// Init has nothing to prepare.
func (c *choice) Init(logr.RuntimeInfo) {}

// Enabled is true for the level at which scores are logged, which the scheduler checks before it logs them.
func (c *choice) Enabled(level int) bool { return level == scoreLevel }

// Info takes the scores.
func (c *choice) Info(_ int, message string, keysAndValues ...any) {
	if message != "Calculated node's final score for pod" {
		return
	}
	var node string
	var score int64
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		switch keysAndValues[i] {
		case "node":
			node, _ = keysAndValues[i+1].(string)
		case "score":
			score, _ = keysAndValues[i+1].(int64)
		}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.scores[node] = score
}

// Error takes nothing: what fails shows in the decision.
func (c *choice) Error(error, string, ...any) {}

// WithValues is c.
func (c *choice) WithValues(...any) logr.LogSink { return c }

// WithName is c.
func (c *choice) WithName(string) logr.LogSink { return c }
