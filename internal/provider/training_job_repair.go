package provider

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster/jobparts"
)

// repair creates what is missing of a running job, and sets back what others have changed in its objects and the plan
// has shown, so that its master and its workers go on with it; it restarts those of its pods that cannot. prior is the
// job as the plan saw it.
func (c *trainingJobCluster) repair(ctx context.Context, prior *jobModel, d trainingjob.Definition) diag.Diagnostics {
	ref := prior.ref()
	fail := func(err error) (diags diag.Diagnostics) {
		c.subject.explain(&diags, err)
		return diags
	}
	job, diags := c.mayChange(ctx, ref)
	if diags.HasError() {
		return diags
	}
	missing, _, diags := c.missingParts(ctx, ref, trainingjob.NamedParts(ref, d.ServiceAccountName == "", d.Queue != nil))
	if diags.HasError() || len(missing) == 0 && !prior.isChanged() {
		return diags
	}
	credentials, err := c.credentials(ctx, ref)
	newKey := slices.ContainsFunc(missing, isSecret) || prior.hasChanged("Secret")
	if newKey {
		credentials, err = trainingjob.NewCredentials(rand.Reader, time.Now(), trainingjob.MasterName(ref.Name))
	}
	if err != nil {
		return fail(err)
	}
	objects, err := trainingjob.Render(d, credentials)
	if err != nil {
		return fail(err)
	}
	pods, err := c.pods(ctx, ref)
	if err != nil {
		return fail(err)
	}
	generation, err := c.generation(ctx, ref)
	if err != nil {
		return fail(err)
	}
	objects.Own(ref)
	objects.Rejoin(trainingjob.GroupOf(job.Spec.Template.Labels))
	objects.HoldLease(pods, generation)
	restarts := trainingjob.RestartsNone
	if !objects.ServeAt(pods) && isAmong(missing, objects.Service) {
		restarts = trainingjob.RestartsMaster // it gives new workers the address that the Service had
	}
	diags = c.createMissing(ctx, ref, objects.Parts(), missing, func(part trainingjob.Object) error {
		if objects.MinJob != nil && part == trainingjob.Object(objects.MinJob) {
			return c.reach(ctx, objects)
		}
		return nil
	})
	if diags.HasError() {
		return diags
	}
	if prior.hasChanged("Secret") && !isAmong(missing, objects.Credentials) { // key, certificate and token belong together
		data := map[string]any{"data": objects.Credentials.Data}
		if err := cluster.Merge(ctx, c.client, c.client.Kubernetes().CoreV1().Secrets(ref.Namespace), objects.Credentials.Name, data); err != nil {
			return fail(err)
		}
		restarts = trainingjob.RestartsAll
	}
	if diags.Append(c.restore(ctx, prior, job, append([]trainingjob.Object{objects.Job}, objects.Parts()...))...); diags.HasError() {
		return diags
	}
	if newKey && !isAmong(missing, objects.ConfigMap) { // it is signed with the key that is gone
		signed := map[string]any{"data": objects.ConfigMap.Data}
		if err := cluster.Merge(ctx, c.client, c.client.Kubernetes().CoreV1().ConfigMaps(ref.Namespace), objects.ConfigMap.Name, signed); err != nil {
			return fail(err)
		}
	}
	for _, part := range missing {
		restarts = max(restarts, trainingjob.LossOf(ref.Name, part).Restarts)
	}
	return append(diags, c.restart(ctx, ref, pods, restarts)...)
}

// madeOf are the objects with which an existing job was created, without the content of its Secret.
func (m *trainingJobModel) madeOf(ctx context.Context, job *batchv1.Job) ([]trainingjob.Object, error) {
	d, diags := m.definition(ctx)
	if diags.HasError() {
		return nil, &unreadableJobError{diags: diags}
	}
	if problems := d.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("what the job was made of: %s", problems[0])
	}
	objects, err := trainingjob.Render(d, trainingjob.Credentials{})
	if err != nil {
		return nil, err
	}
	objects.Own(m.ref())
	objects.Rejoin(trainingjob.GroupOf(job.Spec.Template.Labels))
	objects.Credentials.Data = map[string][]byte{trainingjob.TLSCertificateKey: nil, trainingjob.TLSPrivateKey: nil, trainingjob.TokenKey: nil}
	return append([]trainingjob.Object{objects.Job}, objects.Parts()...), nil
}

// generation is that of the newest master that has reported.
func (c *trainingJobCluster) generation(ctx context.Context, ref trainingjob.JobRef) (int64, error) {
	reported, err := cluster.Get(ctx, c.client, c.client.Kubernetes().CoreV1().ConfigMaps(ref.Namespace), trainingjob.StatusName(ref.Name))
	if apierrors.IsNotFound(err) {
		return trainingjob.UnknownGeneration, nil
	}
	if err != nil {
		return 0, err
	}
	status, err := trainingjob.DecodeStatus(reported)
	if err != nil {
		return trainingjob.UnknownGeneration, nil //nolint:nilerr // a status that cannot be read says nothing
	}
	return status.Generation, nil
}

// restart deletes pods that run, the master's first: it keeps the newest state while it ends. Others are made in their
// place.
func (c *trainingJobCluster) restart(ctx context.Context, ref trainingjob.JobRef, pods []corev1.Pod, restarts trainingjob.Restarts) diag.Diagnostics {
	var diags diag.Diagnostics
	for _, role := range []string{trainingjob.RoleMaster, trainingjob.RoleWorker} {
		if restarts == trainingjob.RestartsNone || restarts == trainingjob.RestartsMaster && role != trainingjob.RoleMaster {
			continue
		}
		for i := range pods {
			pod := &pods[i]
			if pod.Labels[trainingjob.LabelRole] != role || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
				continue
			}
			err := c.client.Kubernetes().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				summary, detail := cluster.Explain(c.client.Wrap("delete", jobparts.Ref(pod), err))
				diags.AddError(summary, fmt.Sprintf("%s\n\nThe missing objects are created again, but this pod cannot use them until it restarts. "+
					"Delete the job's running pods: kubectl delete pods -n %s -l %s=%s", detail, ref.Namespace, trainingjob.LabelJobName, ref.Name))
				return diags
			}
		}
	}
	return diags
}
