//go:build !offline

package snapshot

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// maxBarredRounds bounds how often a forecast is made again because a pod that takes the place of a victim is rejected;
// each time another pod may be a victim.
const maxBarredRounds = 3

// DryRunReplacements makes forecasts again if the API server, in a dry run, rejects pods that controllers would
// create in the place of victims: policies and webhooks may be newer than the victims are.
func DryRunReplacements(
	ctx context.Context, client *cluster.Client, s *forecast.Snapshot, answers []forecast.Answer,
	again func(*forecast.Snapshot) []forecast.Answer,
) []forecast.Answer {
	checked := map[types.UID]bool{}
	for range maxBarredRounds {
		barred := maps.Clone(s.Barred)
		if barred == nil {
			barred = map[types.UID]bool{}
		}
		for _, answer := range answers {
			for _, pod := range answer.Replacements {
				controller := metav1.GetControllerOfNoCopy(pod)
				if controller == nil || checked[controller.UID] {
					continue
				}
				checked[controller.UID] = true
				if rejects(ctx, client, pod) {
					barred[controller.UID] = true
				}
			}
		}
		if len(barred) == len(s.Barred) {
			break
		}
		next := *s
		next.Barred = barred
		s = &next
		answers = again(s)
	}
	return answers
}

// rejects reports whether the API server rejects a pod for a reason that the forecast cannot compute.
func rejects(ctx context.Context, client *cluster.Client, pod *corev1.Pod) bool {
	pod = pod.DeepCopy()
	pod.Spec.Priority, pod.Spec.PreemptionPolicy, pod.Spec.Overhead = nil, nil, nil // admission computes them
	r := &reply{}
	r.ask(ctx, client, forecast.Pod{Pod: pod}, false)
	return r.of(forecast.Pod{Pod: pod}).Refusal != nil
}
