package trainingjob

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLossOfKnowsEveryPart(t *testing.T) {
	for name, d := range map[string]Definition{"tutorial": tutorial(), "everything": everything(), "queued": queued()} {
		o, err := Render(d, credentials())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range o.Parts() {
			loss := LossOf(d.Job.Name, part)
			for _, text := range []string{loss.Without, loss.Repair} {
				if text == "" || strings.HasSuffix(text, ".") {
					t.Errorf("%s: %T %s: %+v does not end a sentence", name, part, part.GetName(), loss)
				}
			}
		}
	}
}

func TestServeAtKeepsTheAddressThatWorkersWereGiven(t *testing.T) {
	job := JobRef{Name: "low-prio-job", Namespace: "default", UID: "3f0c"}
	worker := func(address string) corev1.Pod {
		return *WorkerPod(Workers{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: RoleWorker, Args: []string{"worker"}}}}}}, job, 0, true, address)
	}
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"a worker's":                  {[]corev1.Pod{{}, worker("10.96.0.7:50001")}, "10.96.0.7"},
		"of IPv6":                     {[]corev1.Pod{worker("[fd00::7]:50001")}, "fd00::7"},
		"a name leads to any address": {[]corev1.Pod{worker("low-prio-job-master.default.svc:50001")}, ""},
		"nobody knows one":            {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Render(tutorial(), Credentials{})
			if err != nil {
				t.Fatal(err)
			}
			if served := o.ServeAt(c.pods); served != (c.want != "") || o.Service.Spec.ClusterIP != c.want {
				t.Errorf("%t, cluster IP %q, want %q", served, o.Service.Spec.ClusterIP, c.want)
			}
		})
	}
}

func TestHoldLease(t *testing.T) {
	master := func(phase corev1.PodPhase, deleted *metav1.Time) []corev1.Pod {
		return []corev1.Pod{
			{ObjectMeta: metav1.ObjectMeta{Name: "worker", Labels: map[string]string{LabelRole: RoleWorker}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
			{ObjectMeta: metav1.ObjectMeta{Name: "master", Labels: map[string]string{LabelRole: RoleMaster}, DeletionTimestamp: deleted}, Status: corev1.PodStatus{Phase: phase}},
		}
	}
	for name, c := range map[string]struct {
		pods        []corev1.Pod
		generation  int64
		holder      string
		transitions int32
	}{
		"a master that runs continues with it":                        {master(corev1.PodRunning, nil), 3, "master", 3},
		"one that is being deleted leaves it to the next":             {master(corev1.PodRunning, &metav1.Time{}), 3, "", 3},
		"one that has ended leaves it to the next":                    {master(corev1.PodFailed, nil), 3, "", 3},
		"a job without a master so far begins with the first":         {master(corev1.PodPending, nil), 0, "", 0},
		"one of unknown generation takes it anew, above all that was": {master(corev1.PodRunning, nil), UnknownGeneration, "", UnknownGeneration},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := Render(tutorial(), Credentials{})
			if err != nil {
				t.Fatal(err)
			}
			o.HoldLease(c.pods, c.generation)
			holder, transitions := "", int32(0)
			if spec := o.Lease.Spec; spec.HolderIdentity != nil {
				holder = *spec.HolderIdentity
			}
			if spec := o.Lease.Spec; spec.LeaseTransitions != nil {
				transitions = *spec.LeaseTransitions
			}
			if holder != c.holder || transitions != c.transitions {
				t.Errorf("held by %q, taken %d times; want %q, %d", holder, transitions, c.holder, c.transitions)
			}
		})
	}
}

func TestRejoinKeepsTheGroup(t *testing.T) {
	first, err := Render(queued(), credentials())
	if err != nil {
		t.Fatal(err)
	}
	group := GroupOf(first.Job.Spec.Template.Labels)
	again, err := Render(queued(), Credentials{Token: "another"})
	if err != nil {
		t.Fatal(err)
	}
	again.Rejoin(group)
	if got := GroupOf(again.MinJob.Spec.Template.Labels); got != group || group == "" {
		t.Errorf("the minimum is in group %q, the master in %q", got, group)
	}
}
