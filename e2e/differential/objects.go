package differential

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// put creates the objects of a snapshot, except for its pending pods: first what pods need, so that the scheduler has
// seen it when it sees the pods.
func (c *Cluster) put(ctx context.Context, s *Snapshot) error {
	if err := c.putShared(ctx, s); err != nil {
		return err
	}
	for _, node := range s.Nodes {
		if _, err := c.client.CoreV1().Nodes().Create(ctx, fresh(node), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, budget := range s.Budgets {
		budgets := c.client.PolicyV1().PodDisruptionBudgets(budget.Namespace)
		created, err := budgets.Create(ctx, fresh(budget), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		created.Status = budget.Status
		if _, err := budgets.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	for _, service := range s.Services {
		if _, err := c.client.CoreV1().Services(service.Namespace).Create(ctx, fresh(service), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, set := range s.ReplicaSets {
		if _, err := c.client.AppsV1().ReplicaSets(set.Namespace).Create(ctx, fresh(set), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, set := range s.StatefulSets {
		if _, err := c.client.AppsV1().StatefulSets(set.Namespace).Create(ctx, fresh(set), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, controller := range s.ReplicationControllers {
		if _, err := c.client.CoreV1().ReplicationControllers(controller.Namespace).Create(ctx, fresh(controller), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, pod := range s.Pods {
		if waits(pod) {
			continue
		}
		if _, err := c.pod(ctx, pod); err != nil {
			return fmt.Errorf("pod %s: %w", nameOf(pod), err)
		}
	}
	return nil
}

// putShared makes what admission looks up, and what is the same for every snapshot: it stays.
func (c *Cluster) putShared(ctx context.Context, s *Snapshot) error {
	for _, class := range s.Classes {
		if _, err := c.client.SchedulingV1().PriorityClasses().Create(ctx, fresh(class), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, runtime := range s.Runtimes {
		if _, err := c.client.NodeV1().RuntimeClasses().Create(ctx, fresh(runtime), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, namespace := range s.Namespaces {
		namespaces := c.client.CoreV1().Namespaces()
		_, err := namespaces.Create(ctx, fresh(namespace), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = namespaces.Update(ctx, fresh(namespace), metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pod creates a pod with its status, and begins its deletion where it is being deleted. Admission forbids a pod of a
// class that it has not seen yet, for an instant.
func (c *Cluster) pod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	pods := c.client.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, fresh(pod), metav1.CreateOptions{})
	for apierrors.IsForbidden(err) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		created, err = pods.Create(ctx, fresh(pod), metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("creating it: %w", err)
	}
	created.Status = pod.Status
	if created, err = pods.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("setting its status: %w", err)
	}
	if pod.DeletionTimestamp != nil {
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: pod.DeletionGracePeriodSeconds}); err != nil {
			return nil, fmt.Errorf("beginning its deletion: %w", err)
		}
	}
	return created, nil
}

// read is the snapshot that the API server has.
func (c *Cluster) read(ctx context.Context) (*Snapshot, error) {
	all := metav1.ListOptions{}
	namespaces, err1 := c.client.CoreV1().Namespaces().List(ctx, all)
	classes, err2 := c.client.SchedulingV1().PriorityClasses().List(ctx, all)
	nodes, err3 := c.client.CoreV1().Nodes().List(ctx, all)
	budgets, err4 := c.client.PolicyV1().PodDisruptionBudgets("").List(ctx, all)
	services, err5 := c.client.CoreV1().Services("").List(ctx, all)
	replicaSets, err6 := c.client.AppsV1().ReplicaSets("").List(ctx, all)
	statefulSets, err7 := c.client.AppsV1().StatefulSets("").List(ctx, all)
	controllers, err9 := c.client.CoreV1().ReplicationControllers("").List(ctx, all)
	pods, err8 := c.client.CoreV1().Pods("").List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9); err != nil {
		return nil, err
	}
	return &Snapshot{
		Namespaces: pointers(namespaces.Items), Classes: pointers(classes.Items), Nodes: pointers(nodes.Items), Budgets: pointers(budgets.Items),
		Services: pointers(services.Items), ReplicaSets: pointers(replicaSets.Items), StatefulSets: pointers(statefulSets.Items), Pods: pointers(pods.Items),
		ReplicationControllers: pointers(controllers.Items),
	}, nil
}

// clear deletes everything that put does not leave.
func (c *Cluster) clear(ctx context.Context) error {
	now := int64(0)
	atOnce, all := metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}
	var problems []error
	for _, namespace := range []string{"default", "other"} {
		problems = append(problems,
			c.client.CoreV1().Pods(namespace).DeleteCollection(ctx, atOnce, all),
			c.client.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(ctx, atOnce, all),
			c.client.AppsV1().ReplicaSets(namespace).DeleteCollection(ctx, atOnce, all),
			c.client.CoreV1().ReplicationControllers(namespace).DeleteCollection(ctx, atOnce, all),
			c.client.AppsV1().StatefulSets(namespace).DeleteCollection(ctx, atOnce, all),
		)
	}
	services, err := c.client.CoreV1().Services("").List(ctx, all)
	problems = append(problems, err)
	if err == nil {
		for i := range services.Items {
			if service := &services.Items[i]; service.Name != "kubernetes" {
				problems = append(problems, c.client.CoreV1().Services(service.Namespace).Delete(ctx, service.Name, atOnce))
			}
		}
	}
	problems = append(problems, c.client.CoreV1().Nodes().DeleteCollection(ctx, atOnce, all))
	return errors.Join(problems...)
}

// fresh is a copy of an object as a client would create it.
func fresh[T any, P interface {
	object[T]
	metav1.Object
}](o P) P {
	copied := P(o.DeepCopy())
	copied.SetUID(types.UID(""))
	copied.SetCreationTimestamp(metav1.Time{})
	copied.SetDeletionTimestamp(nil)
	copied.SetDeletionGracePeriodSeconds(nil)
	return copied
}

func pointers[T any](items []T) []*T {
	list := slices.Grow([]*T(nil), len(items))
	for i := range items {
		list = append(list, &items[i])
	}
	return list
}
