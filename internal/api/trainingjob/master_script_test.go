package trainingjob

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podhelpers "k8s.io/component-helpers/resource"
)

// scripted is the tutorial's job with a script of another framework.
func scripted() Definition {
	d := tutorial()
	d.Job.Command = []string{"python3"}
	return d
}

// masterAndScript are the containers of a master's pod.
func masterAndScript(t *testing.T, d Definition) (pod corev1.PodSpec, master, script corev1.Container) {
	t.Helper()
	if problems := d.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	template, err := d.MasterTemplate()
	if err != nil {
		t.Fatal(err)
	}
	pod = template.Spec
	i := slices.IndexFunc(pod.InitContainers, isScript)
	if i < 0 || len(pod.Containers) != 1 {
		t.Fatalf("containers: %+v, %+v", pod.InitContainers, pod.Containers)
	}
	return pod, pod.Containers[0], pod.InitContainers[i]
}

func TestTheMastersCredentialsAreInTheMastersContainerAlone(t *testing.T) {
	d := scripted()
	d.Master.InitContainers = []InitContainer{{Name: "fetch", VolumeMounts: []VolumeMount{{Name: "output", MountPath: "/in"}}}}
	pod, master, _ := masterAndScript(t, d)
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Error("every container gets a token of the API server")
	}
	if pod.ShareProcessNamespace != nil || pod.HostPID {
		t.Error("containers see each other's processes")
	}
	mounted := func(c corev1.Container, volume string) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
	}
	for _, volume := range []string{tokenVolume, credentialsVolume, jobVolume} {
		if !mounted(master, volume) {
			t.Errorf("the master has no %s", volume)
		}
		for _, c := range pod.InitContainers {
			if mounted(c, volume) {
				t.Errorf("container %s has %s", c.Name, volume)
			}
		}
	}
}

func TestAScriptCannotWriteWhereTheMasterReads(t *testing.T) {
	_, master, script := masterAndScript(t, scripted())
	for _, m := range script.VolumeMounts {
		if !m.ReadOnly && slices.ContainsFunc(master.VolumeMounts, func(its corev1.VolumeMount) bool { return its.Name == m.Name }) {
			t.Errorf("the script can write to %s, which the master reads", m.Name)
		}
	}
	if !slices.ContainsFunc(script.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "data" }) {
		t.Error("the script does not see the user's volumes")
	}
}

func TestAMastersScriptAddsNothingToWhatItsPodRequests(t *testing.T) {
	d := scripted()
	amounts := corev1.ResourceList{"cpu": resource.MustParse("1001m"), "memory": resource.MustParse("1000000001"), "nvidia.com/gpu": resource.MustParse("1")}
	d.Master.Resources = &corev1.ResourceRequirements{Limits: amounts}
	pod, master, script := masterAndScript(t, d)
	for name, want := range amounts {
		got := podhelpers.PodRequests(&corev1.Pod{Spec: pod}, podhelpers.PodResourcesOptions{})[name]
		if got.Cmp(want) != 0 {
			t.Errorf("the pod requests %s of %s, and without a script %s", got.String(), name, want.String())
		}
		if limit := script.Resources.Limits[name]; limit.Cmp(want) != 0 {
			t.Errorf("the script is limited to %s of %s, of %s", limit.String(), name, want.String())
		}
	}
	if _, has := master.Resources.Limits["nvidia.com/gpu"]; has {
		t.Error("the master has the device, and the script cannot use it")
	}
	if limit := master.Resources.Limits["memory"]; limit.Cmp(amounts["memory"]) != 0 {
		t.Errorf("the master is limited to %s", limit.String())
	}
}

func TestPodOverridesThatWouldShowAScriptTheMastersCredentialsAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ patch, want string }{
		"processes":    {`{"spec":{"shareProcessNamespace":true}}`, "shareProcessNamespace"},
		"the node's":   {`{"spec":{"hostPID":true}}`, "hostPID"},
		"the token":    {`{"spec":{"automountServiceAccountToken":true}}`, "automountServiceAccountToken"},
		"the key":      {`{"spec":{"initContainers":[{"name":"script","volumeMounts":[{"name":"elastic-credentials","mountPath":"/c"}]}]}}`, "only the master may use it"},
		"the sockets":  {`{"spec":{"initContainers":[{"name":"script","volumeMounts":[{"name":"elastic-script","mountPath":"/elastic-script","readOnly":false}]}]}}`, "only the master may use it"},
		"no container": {`{"spec":{"initContainers":[{"name":"script","$patch":"delete"}]}}`, "which runs workers.command"},
	} {
		t.Run(name, func(t *testing.T) {
			d := scripted()
			d.Master.PodOverrides = json.RawMessage(test.patch)
			problems := d.Problems()
			if len(problems) != 1 || problems[0].Field != "master.pod_overrides" || !strings.Contains(problems[0].Message, test.want) {
				t.Errorf("%+v", problems)
			}
		})
	}
}
