package training_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web/webtest"
)

func TestARunningJobIsSeenByItsServiceItsStatusAndItsEvents(t *testing.T) {
	t.Parallel()
	j := start(t, paced(define(t, referenceModel), 100*time.Millisecond))
	j.awaitStatus("two ready workers", twoReady)
	service, err := j.client.CoreV1().Services(j.ns).Get(t.Context(), trainingjob.MasterName(j.name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var port *corev1.ServicePort
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Name == "http" {
			port = &service.Spec.Ports[i]
		}
	}
	if port == nil || port.Port != trainingjob.StatusPort {
		t.Fatalf("the Service's ports are %v", service.Spec.Ports)
	}
	masters, err := j.client.CoreV1().Pods(j.ns).List(t.Context(), metav1.ListOptions{LabelSelector: trainingjob.LabelJobName + "=" + j.name + "," + trainingjob.LabelRole + "=" + trainingjob.RoleMaster})
	if err != nil || len(masters.Items) != 1 {
		t.Fatalf("%d masters: %v", len(masters.Items), err)
	}
	address := "http://" + masters.Items[0].Status.PodIP + ":8080/"
	for path, want := range map[string]string{
		"": "<h1>" + j.name + "</h1>", "metrics": `elastic_trainer_workers{state="ready"} 2`, "metrics?": `elastic_trainer_goodput_seconds_total{phase="computing"} `, "healthz": "ok", "readyz": "ok",
	} {
		if got := webtest.Get(t, address+path); !strings.Contains(got, want) {
			t.Errorf("/%s does not say %q:\n%s", path, want, got)
		}
	}
	j.awaitSuccess()
	status := j.awaitStatus("the end", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseSucceeded })
	if status.Goodput == nil || *status.Goodput <= 0 || *status.Goodput > 1 {
		t.Errorf("goodput %v", status.Goodput)
	}
	if split := status.GoodputSplit; split == nil || split.Phase != "" || len(split.Seconds) != len(trainingjob.GoodputPhases()) ||
		split.Seconds[trainingjob.GoodputComputing] <= 0 || split.HighestStep != status.StepsTotal {
		t.Errorf("the goodput split at the end is %+v", split)
	} else {
		life := 0.0
		for _, seconds := range split.Seconds {
			life += seconds
		}
		if most := split.At.Sub(masters.Items[0].CreationTimestamp.Time).Seconds(); life <= 0 || life > most {
			t.Errorf("%v add up to %g s; the master's pod was created %g s before", split.Seconds, life, most)
		}
		t.Logf("goodput phases %v of %g s", split.Seconds, life)
	}
	events, err := j.client.CoreV1().Events(j.ns).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + j.name})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range events.Items {
		seen[e.Reason] = true
	}
	for _, reason := range []string{"WorkerJoined", "Checkpointed", "ModelSaved"} {
		if !seen[reason] {
			t.Errorf("no Event %s among %v", reason, seen)
		}
	}
}
