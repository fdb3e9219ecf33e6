package trainingjob

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCredentialsOfAnObjectStoreComeFromASecret(t *testing.T) {
	d := tutorial()
	d.Job.Data.Training, d.Job.Data.Validation = "s3://bucket/train", "gs://bucket/test"
	// As the docs of data.training write it.
	override := func(role string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"envFrom":[{"secretRef":{"name":"s3"}}]}]}}`, role))
	}
	d.Master.PodOverrides, d.Workers.PodOverrides = override(RoleMaster), override(RoleWorker)
	if problems := d.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	o, err := Render(d, credentials())
	if err != nil {
		t.Fatal(err)
	}
	var workers Workers
	if err := json.Unmarshal([]byte(o.ConfigMap.Data[WorkersKey]), &workers); err != nil {
		t.Fatal(err)
	}
	for role, pod := range map[string]corev1.PodSpec{RoleMaster: o.Job.Spec.Template.Spec, RoleWorker: workers.Template.Spec} {
		i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == role })
		if i < 0 || len(pod.Containers) != 1 {
			t.Fatalf("%s: %d containers", role, len(pod.Containers))
		}
		if from := pod.Containers[i].EnvFrom; len(from) != 1 || from[0].SecretRef == nil || from[0].SecretRef.Name != "s3" || pod.Containers[i].Image == "" {
			t.Errorf("%s: %+v", role, pod.Containers[i])
		}
	}
	if text := o.ConfigMap.Data[JobKey]; !strings.Contains(text, "s3://bucket/train") || strings.Contains(text, "secret") {
		t.Error(text)
	}
}
