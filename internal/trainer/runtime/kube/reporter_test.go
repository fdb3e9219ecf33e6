package kube

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

func TestWhatHappensVeryOftenMakesFewEventsAndWhatMattersMakesOneEach(t *testing.T) {
	for reason, want := range map[string]int{coordinator.ReasonEvaluated: 1, coordinator.ReasonCheckpointed: 1, "WorkerPreempted": 20} {
		t.Run(reason, func(t *testing.T) {
			s := newServer(t)
			r := NewReporter(s.cluster, trainingjob.Status{}, quiet())
			for i := range 20 {
				r.Notice(coordinator.Notice{Reason: reason, Message: fmt.Sprintf("the %d.", i)})
			}
			r.Close()
			got := 0
			for _, write := range s.writes() {
				if write == "POST events" {
					got++
				}
			}
			if got != want {
				t.Errorf("%d Events of 20 notices, want %d: %v", got, want, s.writes())
			}
		})
	}
}

func TestAMasterReadsTheSplitOfTheMasterBeforeAndKeepsItUntilItHasItsOwn(t *testing.T) {
	s := newServer(t)
	text := `{"phase":"Running","generation":1,"goodput_split":{"phase":"computing","seconds":{"computing":12.5,"saving":1},"job_digest":"d"},"disruptions":{"count":3,"lost_steps":7,"lost_seconds":1,"newest":null}}`
	s.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "digits-status"}, Data: map[string]string{trainingjob.StatusKey: text}})
	earlier, err := s.cluster.EarlierStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[trainingjob.GoodputPhase]float64{trainingjob.GoodputComputing: 12.5, trainingjob.GoodputSaving: 1}; earlier.GoodputSplit == nil || !maps.Equal(earlier.GoodputSplit.Seconds, want) {
		t.Fatalf("read %+v, want %v", earlier, want)
	}
	r := NewReporter(s.cluster, earlier, quiet())
	r.Status(trainingjob.Status{Phase: trainingjob.PhaseWaiting})
	r.Close()
	var bodies []string
	for where, merges := range s.merges {
		if strings.HasSuffix(where, "digits-status") {
			bodies = append(bodies, merges...)
		}
	}
	if len(bodies) != 2 || bodies[0] != "{}" || !strings.Contains(bodies[1], `\"computing\":12.5`) || !strings.Contains(bodies[1], `\"lost_steps\":7`) {
		t.Errorf("written were %q", bodies)
	}
}
