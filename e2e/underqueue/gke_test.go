package underqueue_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/providertest"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// TestTheExampleForGKEKeepsMastersOnMachinesThatStayAndGoesOnWithoutASpotMachine applies examples/gke as it is, on
// nodes that are labelled and tainted as those of GKE's node pools, with a gke-gcloud-auth-plugin that prints a token
// of this cluster. What a spot machine that is taken back is to Kubernetes, is a node that is gone.
func TestTheExampleForGKEKeepsMastersOnMachinesThatStayAndGoesOnWithoutASpotMachine(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	spot := pool("spot", 2, map[string]string{"cloud.google.com/gke-spot": "true"}, "cloud.google.com/gke-spot=true:NoSchedule")
	t4 := pool("t4", 1, map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, gpu+"=present:NoSchedule")
	t4.CPU, t4.AllocatableCPU, t4.Memory, t4.Resources = "16", "15.89", "60Gi", map[string]string{gpu: "4"}
	gke := simcluster.Start(t, simcluster.NodeGroup(pool("default-pool", 1, nil)), simcluster.NodeGroup(spot), simcluster.NodeGroup(t4),
		simcluster.Image(image, trainer), simcluster.Image(hostImage, controlplane.HostImage), simcluster.Kueue())
	a := acting{place: onGKE(t, gke)}
	plugin(t, a.token())
	admin, err := gke.Config()
	if err != nil {
		t.Fatal(err)
	}
	r := providertest.NewTerminal(t)
	r.Environment = []string{
		"TF_VAR_endpoint=" + strings.TrimPrefix(admin.Host, "https://"), "TF_VAR_cluster_ca_certificate=" + base64.StdEncoding.EncodeToString(admin.CAData),
		"TF_VAR_image=" + image, "TF_VAR_namespace=" + a.ns, "TF_VAR_t4_nodes=1", "TF_VAR_epochs=1000",
	}
	if err := os.CopyFS(r.Directory, os.DirFS(filepath.Join("..", "..", "examples", "gke"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.Directory, "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	printed, code := r.Run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	providertest.ExpectText(t, printed, a.ns+"/digits will start without evicting any pods", "admitted by ClusterQueue training")

	a.await("two workers", func() bool { return a.status().WorkersRunning == 2 })
	if on := a.nodeOf("batch.kubernetes.io/job-name=digits"); on != "default-pool-1" {
		t.Errorf("the master is on %q", on)
	}
	if on := a.nodeOf("elastic-training.github.io/task=t4"); on != "t4-1" {
		t.Errorf("the task with T4s is on %q", on)
	}
	minimum, above := a.nodeOf(trainingjob.LabelMinimum+"=true"), a.nodeOf(trainingjob.LabelWorkerID+"=1")
	if minimum == above || !strings.HasPrefix(minimum, "spot-") || !strings.HasPrefix(above, "spot-") {
		t.Errorf("the workers are on %q and %q", minimum, above)
	}
	r.ExpectNoChanges(t, config)

	if err := gke.StopNode(t.Context(), above, true); err != nil {
		t.Fatal(err)
	}
	a.await("one worker", func() bool { return a.status().WorkersRunning == 1 })
	alone := a.status()
	a.await("steps of one worker", func() bool { return a.status().StepsDone > alone.StepsDone+5 })
	r.ExpectNoChanges(t, config)
	if err := gke.StartNode(t.Context(), above); err != nil {
		t.Fatal(err)
	}
	a.await("two workers again", func() bool { return a.status().WorkersRunning == 2 })
	if s := a.status(); s.Generation != alone.Generation {
		t.Errorf("the master was replaced: %+v", s)
	}
	r.ExpectNoChanges(t, config)

	if printed, code := r.Run(t, config, "destroy", "-auto-approve"); code != 0 {
		t.Errorf("destroy exited with %d:\n%s", code, printed)
	}
	a.nothingLeft()
}

// pool are nodes of a node pool of n1-standard-4 machines.
func pool(name string, count int, labels map[string]string, taints ...string) controlplane.NodeGroup {
	g := controlplane.NodeGroup{Name: name, Count: count, CPU: "4", AllocatableCPU: "3.92", Memory: "15Gi", Taints: taints}
	g.Labels = map[string]string{"cloud.google.com/gke-nodepool": name}
	for key, value := range labels {
		g.Labels[key] = value
	}
	return g
}

func onGKE(t *testing.T, gke *simcluster.Cluster) place {
	t.Helper()
	p := place{T: t, ns: "training"}
	var err error
	if p.kube, err = gke.Client(); err != nil {
		t.Fatal(err)
	}
	if p.kueue, err = gke.Kueue(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// token is that of an account with all rights: which ones suffice is tested elsewhere.
func (a acting) token() string {
	a.Helper()
	const name = "terraform"
	meta, o := metav1.ObjectMeta{Name: name}, metav1.CreateOptions{}
	if _, err := a.kube.CoreV1().ServiceAccounts(a.ns).Create(a.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, o); err != nil {
		a.Fatal(err)
	}
	_, err := a.kube.RbacV1().ClusterRoleBindings().Create(a.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: a.ns}},
	}, o)
	if err != nil {
		a.Fatal(err)
	}
	token, err := a.kube.CoreV1().ServiceAccounts(a.ns).CreateToken(a.Context(), name, &authenticationv1.TokenRequest{}, o)
	if err != nil {
		a.Fatal(err)
	}
	return token.Status.Token
}

// plugin puts a gke-gcloud-auth-plugin with this token where the provider finds it.
func plugin(t *testing.T, token string) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1beta1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"}}'\n", token)
	if err := os.WriteFile(filepath.Join(dir, "gke-gcloud-auth-plugin"), []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// nodeOf is the node that the only pod of these labels is on, when it is on one.
func (a acting) nodeOf(selector string) (node string) {
	a.Helper()
	a.place.await("the node of "+selector, func(ctx context.Context) (string, bool, error) {
		pods, err := a.kube.CoreV1().Pods(a.ns).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil || len(pods.Items) != 1 {
			return "not one pod", false, err
		}
		node = pods.Items[0].Spec.NodeName
		return "not on a node", node != "", nil
	})
	return node
}
