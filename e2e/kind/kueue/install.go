package kueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/k8s/resources"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	kueueapi "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// fieldOwner owns the fields of what is installed.
const fieldOwner = "e2e-kind"

const (
	startLimit   = 3 * time.Minute
	webhookLimit = time.Minute
	pollInterval = 500 * time.Millisecond
)

// Install applies a release, server-side, and returns when its manager is available and its webhooks answer: until
// then every pod that is created is refused.
func Install(ctx context.Context, cluster klient.Client, release Release) error {
	if err := adjust(release.Objects); err != nil {
		return fmt.Errorf("install Kueue: %w", err)
	}
	r := cluster.Resources()
	for _, object := range release.Objects {
		err := r.GetControllerRuntimeClient().Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
			client.FieldOwner(fieldOwner), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("install Kueue: %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := refreshCertificate(ctx, r); err != nil {
		return err
	}
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: managerName, Namespace: systemNamespace}}
	available := conditions.New(r).DeploymentConditionMatch(manager, appsv1.DeploymentAvailable, corev1.ConditionTrue)
	if err := wait.For(available, wait.WithContext(ctx), wait.WithTimeout(startLimit), wait.WithInterval(pollInterval)); err != nil {
		return fmt.Errorf("install Kueue: its manager was not available within %s: %w%s", startLimit, err, condition(ctx, r))
	}
	return awaitWebhooks(ctx, r)
}

// refreshCertificate makes the kubelet mount the certificate that the manager has made for its webhooks: the manager
// puts it into a secret that is still empty when its pod starts, and is not ready before it sees it in its volume. By
// itself a kubelet looks again after more than a minute; a change of the pod makes it look at once.
func refreshCertificate(ctx context.Context, r *resources.Resources) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: certificateName, Namespace: systemNamespace}}
	made := conditions.New(r).ResourceMatch(secret, func(object k8s.Object) bool {
		secret, ok := object.(*corev1.Secret)
		return ok && len(secret.Data[corev1.TLSCertKey]) > 0
	})
	if err := wait.For(made, wait.WithContext(ctx), wait.WithTimeout(startLimit), wait.WithInterval(pollInterval)); err != nil {
		return fmt.Errorf("install Kueue: its manager made no certificate within %s: %w%s", startLimit, err, condition(ctx, r))
	}
	var pods corev1.PodList
	if err := r.WithNamespace(systemNamespace).List(ctx, &pods); err != nil {
		return fmt.Errorf("install Kueue: the manager's pods: %w", err)
	}
	change := k8s.Patch{PatchType: types.MergePatchType, Data: []byte(`{"metadata":{"annotations":{"` + fieldOwner + `/certificate":"made"}}}`)}
	for i := range pods.Items {
		if err := r.Patch(ctx, &pods.Items[i], change); err != nil {
			return fmt.Errorf("install Kueue: pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// condition describes in what state the manager's pods are.
func condition(ctx context.Context, r *resources.Resources) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookLimit)
	defer cancel()
	var pods corev1.PodList
	if err := r.WithNamespace(systemNamespace).List(ctx, &pods); err != nil {
		return "; its pods: " + err.Error()
	}
	var text strings.Builder
	for _, pod := range pods.Items {
		fmt.Fprintf(&text, "; pod %s is %s", pod.Name, pod.Status.Phase)
		for _, c := range pod.Status.Conditions {
			if c.Status != corev1.ConditionTrue && c.Message != "" {
				fmt.Fprintf(&text, ", %s", c.Message)
			}
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil {
				fmt.Fprintf(&text, ", %s: %s", c.State.Waiting.Reason, c.State.Waiting.Message)
			}
		}
	}
	return text.String()
}

// awaitWebhooks waits until a queue's object could be created, which its webhooks must allow.
func awaitWebhooks(ctx context.Context, r *resources.Resources) error {
	flavor := &unstructured.Unstructured{}
	flavor.SetGroupVersionKind(kueueapi.SchemeGroupVersion.WithKind("ResourceFlavor"))
	flavor.SetName("e2e-probe")
	var last error
	answers := func(ctx context.Context) (bool, error) {
		last = r.GetControllerRuntimeClient().Create(ctx, flavor.DeepCopy(), client.DryRunAll)
		return last == nil, nil
	}
	if err := wait.For(answers, wait.WithContext(ctx), wait.WithTimeout(webhookLimit), wait.WithInterval(pollInterval), wait.WithImmediate()); err != nil {
		return fmt.Errorf("install Kueue: its webhooks did not answer within %s: %w", webhookLimit, errors.Join(err, last))
	}
	return nil
}
