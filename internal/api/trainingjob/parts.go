//go:build !podsonly

package trainingjob

import (
	"fmt"
	"net"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	podconstants "sigs.k8s.io/kueue/pkg/controller/jobs/pod/constants"
)

// Loss is what it means for a job that has not ended that one of its parts is missing. Both texts end a sentence.
type Loss struct {
	Without  string   // what fails
	Repair   string   // what creating the part again comes to
	Restarts Restarts // which pods have to start again after it is created
}

// Restarts are the pods that keep using values of the old part, and cannot use the new one.
type Restarts int

// Which pods have to start again.
const (
	RestartsNone Restarts = iota
	RestartsMaster
	RestartsAll
)

// LossOf reports what a job lacks without one of its parts.
func LossOf(job string, part Object) Loss {
	switch part.(type) {
	case *corev1.Secret:
		return Loss{
			"no pod of the job can start, and new workers cannot authenticate to the master",
			"creates it with new credentials and restarts the job's pods, which do not know these: the job resumes from its newest checkpoint",
			RestartsAll,
		}
	case *corev1.ServiceAccount:
		return Loss{
			"the API server refuses the master's requests, so that no worker is created and the model cannot be saved, and no other master can start",
			"creates it and restarts the master, whose token belongs to the deleted one; the workers keep the state", RestartsMaster,
		}
	case *rbacv1.Role, *rbacv1.RoleBinding:
		return Loss{"the master may not create workers, report its progress or save the model", "creates it with the same rules", RestartsNone}
	case *coordinationv1.Lease:
		return Loss{"a master that has to start again cannot, because the Lease makes sure that there is one", "creates it in the name of the master that runs", RestartsNone}
	case *corev1.Service:
		return Loss{"workers cannot connect to the master", "creates it with the address that the workers know", RestartsNone}
	case *batchv1.Job:
		return Loss{"the first workers.min workers are gone, and the job waits for them", "creates them again", RestartsNone}
	}
	switch part.GetName() {
	case ConfigMapName(job):
		return Loss{"no pod of the job can start, and its workers cannot be changed", "creates it from the configuration", RestartsNone}
	case StatusName(job):
		return Loss{"the master cannot report its progress, and phase, steps and metrics stay as they were", "creates it, and the master's next report fills it", RestartsNone}
	case ModelName(job):
		return Loss{
			"the model cannot be saved, and without output no checkpoint; one that it held is lost", "creates it empty, and the next checkpoint or the model fills it",
			RestartsNone,
		}
	}
	panic(fmt.Sprintf("%T %s is no part of job %s", part, part.GetName(), job)) // Parts and this switch are one list
}

// Rejoin puts the minimum into the group that the job's pods are members of: Render names a new one for new
// credentials.
func (o *Objects) Rejoin(group string) {
	if o.MinJob != nil && group != "" {
		o.MinJob.Spec.Template.Labels[podconstants.GroupNameLabel] = group
	}
}

// ServeAt gives the Service the address that the workers of these pods were given, and reports whether they were given
// one: workers connect to it again and again, and the master gives it to new ones.
func (o *Objects) ServeAt(pods []corev1.Pod) bool {
	for i := range pods {
		for _, container := range pods[i].Spec.Containers {
			at := slices.Index(container.Args, "--master")
			if at < 0 || at+1 >= len(container.Args) {
				continue
			}
			if host, _, err := net.SplitHostPort(container.Args[at+1]); err == nil && net.ParseIP(host) != nil {
				o.Service.Spec.ClusterIP = host
				return true
			}
		}
	}
	return false
}

// UnknownGeneration is above the generation of any master, for a Lease of which nobody knows how often it was taken.
// Workers refuse a master of a generation below one that they know.
const UnknownGeneration = 1 << 20

// HoldLease gives the Lease to the running master of the pods under the generation that it has reported: it continues
// renewing it, and the next master gets the next generation. A generation of 0 is that of a job that had no master yet.
func (o *Objects) HoldLease(pods []corev1.Pod, generation int64) {
	if generation <= 0 {
		return
	}
	o.Lease.Spec.LeaseTransitions = new(int32(generation)) //nolint:gosec // it was read from an int32
	for i := range pods {
		pod := &pods[i]
		if pod.Labels[LabelRole] == RoleMaster && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && generation != UnknownGeneration {
			o.Lease.Spec.HolderIdentity = new(pod.Name)
		}
	}
}
