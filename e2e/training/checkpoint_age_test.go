package training_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerconstants "sigs.k8s.io/kueue/pkg/controller/constants"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"

	rule "github.com/elastic-training/terraform-provider-elastic/internal/scheduler/checkpointage"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/checkpointage"
)

// runCheckpointAge runs the controller until the test ends.
func runCheckpointAge(t *testing.T, by rule.Rule) {
	t.Helper()
	config, err := cluster.Config()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- checkpointage.Run(ctx, checkpointage.Config{REST: config, Rule: by, Every: time.Second, Log: slog.New(slog.DiscardHandler)})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// The controller and a master against a real API server: lists and watches of metadata, and patches of Workloads. Kueue
// is without the gate PriorityBoost here, so that boosts change nothing in the tests beside this one.
func TestAJobsGroupIsBoostedWhileItHoldsQuota(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "4")
	runCheckpointAge(t, rule.Rule{Step: time.Second, Max: 5})
	d := q.define(2, "1")
	j := start(t, d)
	boosts := func(want func(group string) bool) func(context.Context) (string, bool, error) {
		return func(ctx context.Context) (string, bool, error) {
			all, err := q.kueue.Workloads(q.ns).List(ctx, metav1.ListOptions{})
			if err != nil {
				return "", false, err
			}
			seen, group, others := "", "", ""
			for _, w := range all.Items {
				boost := w.Annotations[controllerconstants.PriorityBoostAnnotationKey]
				seen += fmt.Sprintf("%s: %q; ", w.Name, boost)
				if w.Annotations[podconstants.IsGroupWorkloadAnnotationKey] == "true" {
					group = boost
				} else {
					others += boost
				}
			}
			if others != "" {
				return seen, false, fmt.Errorf("a worker above the minimum is boosted: %s", seen)
			}
			return seen, want(group), nil
		}
	}
	j.await("a boost of the group", boosts(func(group string) bool { return group != "" && strings.Trim(group, "12345") == "" }))
	remove := q.urgent(j, 4)
	j.await("no boost of the evicted group", boosts(func(group string) bool { return group == "" }))
	remove()
	if hash, want := j.awaitSuccess(), localOf(t, d); hash != want {
		t.Errorf("hash %s, and on one machine %s", hash, want)
	}
}
