package kube

import (
	"context"
	"testing"

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
