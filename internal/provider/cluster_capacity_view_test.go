package provider

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func podOf(cpu string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}},
	}}}}
}

func nodeOf(cpu string) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		"cpu": resource.MustParse(cpu), "pods": resource.MustParse("10"), "nvidia.com/gpu": resource.MustParse("4"),
	}}}
}

func TestTheRoomOnANode(t *testing.T) {
	amounts := func(cpu, pods, gpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse(pods), "nvidia.com/gpu": resource.MustParse(gpu)}
	}
	for name, c := range map[string]struct {
		pods            []*corev1.Pod
		requested, free corev1.ResourceList
	}{
		"an empty one":           {nil, amounts("0", "0", "0"), amounts("3920m", "10", "4")},
		"one with pods":          {[]*corev1.Pod{podOf("3"), podOf("500m")}, amounts("3500m", "2", "0"), amounts("420m", "8", "4")},
		"one that is overloaded": {[]*corev1.Pod{podOf("3"), podOf("2")}, amounts("5", "2", "0"), amounts("0", "8", "4")},
	} {
		t.Run(name, func(t *testing.T) {
			r := roomOn(nodeOf("3920m"), c.pods)
			if !equality.Semantic.DeepEqual(r.requested, c.requested) || !equality.Semantic.DeepEqual(r.free, c.free) {
				t.Errorf("requested %v, free %v", r.requested, r.free)
			}
		})
	}
}

func TestNoRoomIsLostOrMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var total room
		var allocatable resource.Quantity
		for range rapid.IntRange(1, 4).Draw(t, "nodes") {
			node := nodeOf(rapid.SampledFrom([]string{"1", "3920m", "16"}).Draw(t, "cpu"))
			var pods []*corev1.Pod
			for range rapid.IntRange(0, 5).Draw(t, "pods") {
				pods = append(pods, podOf(rapid.SampledFrom([]string{"0", "100m", "1", "3"}).Draw(t, "request")))
			}
			r := roomOn(node, pods)
			for name := range node.Status.Allocatable {
				requested, free, all := r.requested[name], r.free[name], node.Status.Allocatable[name]
				if free.Sign() < 0 || free.Cmp(all) > 0 {
					t.Fatalf("%s of %s %s is free", free.String(), all.String(), name)
				}
				sum := requested.DeepCopy()
				sum.Add(free)
				if sum.Cmp(all) != 0 && (free.Sign() != 0 || requested.Cmp(all) < 0) {
					t.Fatalf("%s: %s requested, %s free, of %s", name, requested.String(), free.String(), all.String())
				}
			}
			total = total.plus(r)
			allocatable.Add(node.Status.Allocatable["cpu"])
		}
		if got := total.allocatable["cpu"]; got.Cmp(allocatable) != 0 {
			t.Fatalf("all nodes have %s, not %s", allocatable.String(), got.String())
		}
	})
}

func TestAQueuesQuotasWithWhatIsUsedOfThem(t *testing.T) {
	queue := &kueue.ClusterQueue{
		Spec: kueue.ClusterQueueSpec{ResourceGroups: []kueue.ResourceGroup{{Flavors: []kueue.FlavorQuotas{
			{Name: "spot", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("4"), BorrowingLimit: new(resource.MustParse("2"))}}},
			{Name: "on-demand", Resources: []kueue.ResourceQuota{{Name: "cpu", NominalQuota: resource.MustParse("8")}}},
		}}}},
		Status: kueue.ClusterQueueStatus{FlavorsReservation: []kueue.FlavorUsage{{Name: "spot", Resources: []kueue.ResourceUsage{
			{Name: "cpu", Total: resource.MustParse("5"), Borrowed: resource.MustParse("1")},
		}}}},
	}
	got := quotasOf(queue)
	if len(got) != 2 || got[0].flavor != "spot" || got[1].flavor != "on-demand" {
		t.Fatalf("got %+v", got)
	}
	for i, want := range []struct{ nominal, used, borrowed, free string }{{"4", "5", "1", "0"}, {"8", "0", "0", "8"}} {
		q := got[i]
		if q.nominal.String() != want.nominal || q.used.String() != want.used || q.borrowed.String() != want.borrowed || q.free.String() != want.free {
			t.Errorf("%s: %+v", q.flavor, q)
		}
	}
	if got[0].borrowingLimit.String() != "2" || got[1].borrowingLimit != nil {
		t.Error("the limits are others")
	}
}
