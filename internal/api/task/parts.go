package task

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/gang"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// LossOf reports what a task that has not ended lacks without one of its parts. No pod is restarted: what the commands
// have not written elsewhere would be lost.
func LossOf(task string, part Object) trainingjob.Loss {
	switch part.(type) {
	case *corev1.Secret:
		return trainingjob.Loss{
			Without: "no pod of the task can start", Repair: "creates it with the values of secrets_wo; pods that run keep what they have",
		}
	case *corev1.ServiceAccount:
		return trainingjob.Loss{
			Without: "no pod of the task can start, and the API server refuses the requests by which the running ones end and restart together",
			Repair:  "creates it; pods that run can use it when their node renews their tokens, which takes up to an hour",
		}
	case *rbacv1.Role, *rbacv1.RoleBinding:
		return trainingjob.Loss{Without: "the pods of the task cannot start, end and restart together", Repair: "creates it with the same rules"}
	}
	switch part.GetName() {
	case ConfigMapName(task):
		return trainingjob.Loss{Without: "no pod of the task can start", Repair: "creates it from the configuration; pods that run keep their files"}
	case gang.BoardName(task):
		return trainingjob.Loss{
			Without: "the pods of the task cannot agree that all have ended, so that the task never ends, or start again together",
			Repair:  "creates it empty: the pods that run stop their commands and start them again together, and what these have not written elsewhere is lost",
		}
	}
	panic(fmt.Sprintf("%T %s is no part of task %s", part, part.GetName(), task)) // Parts and this switch are one list
}

// AsMade is the task with what only the Job that was made of it says: images, because a release of the provider may
// have other defaults, and the names of the values that its Secret holds.
func (t Task) AsMade(job *batchv1.Job) Task {
	image := func(of []corev1.Container, name, otherwise string) string {
		if i := slices.IndexFunc(of, func(c corev1.Container) bool { return c.Name == name }); i >= 0 {
			return of[i].Image
		}
		return otherwise
	}
	pod := job.Spec.Template.Spec
	t.Image = image(pod.Containers, ContainerName, t.Image)
	t.TrainerImage = image(pod.InitContainers, gangContainer, t.TrainerImage)
	t.SecretValues = nil
	for _, container := range pod.Containers {
		for _, variable := range container.Env {
			if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil && from.SecretKeyRef.Name == SecretName(t.Name) {
				t.SecretValues = append(t.SecretValues, from.SecretKeyRef.Key)
			}
		}
	}
	slices.Sort(t.SecretValues)
	t.SecretValues = slices.Compact(t.SecretValues)
	return t
}
