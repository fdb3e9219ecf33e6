package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// plan is a plan so far, without a cluster: a queue that never preempts, one that does, and two classes.
func plan(t *testing.T) *connection {
	t.Helper()
	c := newConnection(cluster.Config{}, nil, forecastConfig{mode: forecastOff})
	c.addPlanned(reference{kind: aClusterQueue, name: "never"}, clusterQueueAttributes(&kueue.ClusterQueue{}))
	c.addPlanned(reference{kind: aClusterQueue, name: "preempts"}, clusterQueueAttributes(&kueue.ClusterQueue{Spec: kueue.ClusterQueueSpec{
		Preemption: &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority},
	}}))
	for _, namespace := range []string{"a", "b"} {
		c.addPlanned(reference{aLocalQueue, namespace, "never"}, plannedAttributes{clusterQueue: "never"})
		c.addPlanned(reference{aLocalQueue, namespace, "preempts"}, plannedAttributes{clusterQueue: "preempts"})
	}
	c.addPlanned(reference{kind: aWorkloadPriorityClass, name: "low"}, plannedAttributes{value: 1})
	c.addPlanned(reference{kind: aWorkloadPriorityClass, name: "low-too"}, plannedAttributes{value: 1})
	c.addPlanned(reference{kind: aWorkloadPriorityClass, name: "high"}, plannedAttributes{value: 2})
	return c
}

func TestWorkOfDifferentPriorityInAQueueThatNeverPreempts(t *testing.T) {
	type work struct{ what, namespace, queue, class string }
	for behaviour, c := range map[string]struct {
		works []work
		warns bool
	}{
		"is warned about":                       {[]work{{"task 1", "a", "never", "low"}, {"task 2", "a", "never", "high"}}, true},
		"also through queues of two namespaces": {[]work{{"task 1", "a", "never", "low"}, {"task 2", "b", "never", "high"}}, true},
		"and of one without a class":            {[]work{{"task 1", "a", "never", ""}, {"task 2", "a", "never", "high"}}, true},
		"not of the same value":                 {[]work{{"task 1", "a", "never", "low"}, {"task 2", "a", "never", "low-too"}}, false},
		"not where it may preempt":              {[]work{{"task 1", "a", "preempts", "low"}, {"task 2", "a", "preempts", "high"}}, false},
		"not in different queues":               {[]work{{"task 1", "a", "never", "low"}, {"task 2", "a", "preempts", "high"}}, false},
		"not of one that is planned twice":      {[]work{{"task 1", "a", "never", "low"}, {"task 1", "a", "never", "high"}}, false},
		"not about an unknown class":            {[]work{{"task 1", "a", "never", "low"}, {"task 2", "a", "never", "unknown"}}, false},
		"not about an unknown queue":            {[]work{{"task 1", "a", "unknown", "low"}, {"task 2", "a", "unknown", "high"}}, false},
	} {
		t.Run(behaviour, func(t *testing.T) {
			connection := plan(t)
			for i, w := range c.works {
				diags := connection.plansQueued(t.Context(), path.Root("queue"), w.what, w.namespace, w.queue, w.class)
				if warned := len(diags) > 0; warned != (c.warns && i == len(c.works)-1) {
					t.Errorf("%s: %v", w.what, diags)
				}
			}
			if !c.warns {
				return
			}
			if again := connection.plansQueued(t.Context(), path.Root("queue"), "task 3", "a", "never", "high"); len(again) > 0 {
				t.Errorf("it is reported again: %v", again)
			}
		})
	}
}

func TestWhatIsPlannedIsThere(t *testing.T) {
	c := plan(t)
	for behaviour, to := range map[string]reference{
		"an object planned before": {aLocalQueue, "a", "never"},
		"no name":                  {aLocalQueue, "a", ""},
		"whatever is not known without a cluster": {aLocalQueue, "a", "unknown"},
	} {
		if diags := c.checkReference(t.Context(), path.Root("queue"), to, ""); len(diags) > 0 {
			t.Errorf("%s: %v", behaviour, diags)
		}
	}
	answered := &catalogue{attributes: map[string]plannedAttributes{"in-cluster": {}}}
	answered.once.Do(func() {})
	c.planned.unreachable = false // the cluster has not answered above
	c.planned.catalogues[reference{kind: aLocalQueue, namespace: "a"}] = answered
	if diags := c.checkReference(t.Context(), path.Root("queue"), reference{aLocalQueue, "a", "in-cluster"}, ""); len(diags) > 0 {
		t.Errorf("in the cluster: %v", diags)
	}
	diags := c.checkReference(t.Context(), path.Root("queue"), reference{aLocalQueue, "a", "unknown"}, "It waits.")
	if len(diags) != 1 || diags.HasError() || !strings.Contains(diags[0].Detail(), `queue refers to LocalQueue "unknown" in namespace a`) ||
		!strings.Contains(diags[0].Detail(), "elastic_local_queue.NAME.name") || !strings.HasSuffix(diags[0].Detail(), " It waits.") {
		t.Errorf("got %v", diags)
	}
}
