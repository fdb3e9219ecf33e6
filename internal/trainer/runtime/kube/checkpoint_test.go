package kube

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

func TestAWithdrawnCheckpointOfAConfigMapIsNotGoneOnFrom(t *testing.T) {
	server := newServer(t)
	server.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trainingjob.ModelName("digits")}})
	s := Store{Cluster: server.cluster}
	still := func(context.Context) error { return nil }
	if err := s.SaveCheckpoint(t.Context(), master.CheckpointName{Lineage: "11aa22bb33", Step: 40}, []byte("state"), still); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		steps []int64
		left  int
	}{{[]int64{20, 30}, 1}, {[]int64{40}, 0}, {[]int64{40}, 0}} {
		if _, err := s.WithdrawCheckpoints(t.Context(), "11aa22bb33", c.steps); err != nil {
			t.Fatal(err)
		}
		if stored, err := s.Checkpoints("11aa22bb33"); err != nil || len(stored) != c.left {
			t.Errorf("with those of steps %v withdrawn there are %v, %v", c.steps, stored, err)
		}
	}
	if err := s.SaveCheckpoint(t.Context(), master.CheckpointName{Lineage: "11aa22bb33", Step: 40}, []byte("state"), still); err != nil {
		t.Fatal(err)
	}
	if stored, err := s.Checkpoints("11aa22bb33"); err != nil || len(stored) != 1 {
		t.Errorf("after the next one there are %v, %v", stored, err)
	}
}

// What the report says is read by another program, so the annotation is compared as text.
func TestACheckpointIsReportedOnTheJob(t *testing.T) {
	server := newServer(t)
	server.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trainingjob.ModelName("digits")}})
	still := func(context.Context) error { return nil }
	if err := server.cluster.ReportNoCheckpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Truncate(time.Second)
	if err := (Store{Cluster: server.cluster}).SaveCheckpoint(t.Context(), master.CheckpointName{Step: 40}, []byte("state"), still); err != nil {
		t.Fatal(err)
	}
	patches := server.patches("jobs/digits")
	if len(patches) != 2 || !strings.Contains(patches[0], `"elastic-training.github.io/last-checkpoint-time":""`) || !strings.Contains(patches[0], `"uid":"uid"`) {
		t.Fatalf("the Job is patched with %q", patches)
	}
	var second metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(patches[1]), &second); err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, second.Annotations["elastic-training.github.io/last-checkpoint-time"])
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("a checkpoint after %s is reported as %s, %v", before, at, err)
	}
	server.cluster.reported = true // as after Connect
	if err := server.cluster.ReportNoCheckpoint(t.Context()); err != nil || len(server.patches("jobs/digits")) != 2 {
		t.Errorf("the next master forgets the report: %v, %q", err, server.patches("jobs/digits"))
	}
}
