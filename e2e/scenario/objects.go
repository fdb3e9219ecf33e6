package scenario

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario/eventlog"
)

// connect makes a client of the cluster in a kubeconfig file.
func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // no limit of the client's own; there is nobody else to be fair to
	config.WarningHandler = rest.NoWarnings{}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return client, nil
}

// inventory names every object, as kind/name, of the kinds that a story's resources or the masters make. Events are
// left out: they are a record, and Kubernetes removes them by itself.
func inventory(ctx context.Context, client kubernetes.Interface, namespace string) ([]string, error) {
	var objects []string
	var failed error
	options := metav1.ListOptions{}
	add := func(kind string, items []metav1.Object, err error) {
		if err != nil && failed == nil {
			failed = fmt.Errorf("list %s: %w", kind, err)
		}
		for _, item := range items {
			objects = append(objects, kind+"/"+item.GetName())
		}
	}
	core := client.CoreV1()
	pods, err := core.Pods(namespace).List(ctx, options)
	add("pod", objectsOf(pods.Items), err)
	services, err := core.Services(namespace).List(ctx, options)
	add("service", objectsOf(services.Items), err)
	configMaps, err := core.ConfigMaps(namespace).List(ctx, options)
	add("configmap", objectsOf(configMaps.Items), err)
	secrets, err := core.Secrets(namespace).List(ctx, options)
	add("secret", objectsOf(secrets.Items), err)
	accounts, err := core.ServiceAccounts(namespace).List(ctx, options)
	add("serviceaccount", objectsOf(accounts.Items), err)
	claims, err := core.PersistentVolumeClaims(namespace).List(ctx, options)
	add("persistentvolumeclaim", objectsOf(claims.Items), err)
	jobs, err := client.BatchV1().Jobs(namespace).List(ctx, options)
	add("job", objectsOf(jobs.Items), err)
	leases, err := client.CoordinationV1().Leases(namespace).List(ctx, options)
	add("lease", objectsOf(leases.Items), err)
	roles, err := client.RbacV1().Roles(namespace).List(ctx, options)
	add("role", objectsOf(roles.Items), err)
	bindings, err := client.RbacV1().RoleBindings(namespace).List(ctx, options)
	add("rolebinding", objectsOf(bindings.Items), err)
	classes, err := client.SchedulingV1().PriorityClasses().List(ctx, options)
	add("priorityclass", objectsOf(classes.Items), err)
	return objects, failed
}

func objectsOf[T any, P interface {
	*T
	metav1.Object
}](items []T,
) []metav1.Object {
	objects := make([]metav1.Object, len(items))
	for i := range items {
		objects[i] = P(&items[i])
	}
	return objects
}

// collectionTime is how long Kubernetes' garbage collector has for what was owned by a deleted object.
const collectionTime = 30 * time.Second

// left are the objects that are there and were not before, once the garbage collector has had its time.
func left(ctx context.Context, client kubernetes.Interface, namespace string, before []string) (eventlog.Left, error) {
	deadline := time.Now().Add(collectionTime)
	for {
		now, err := inventory(ctx, client, namespace)
		if err != nil {
			return eventlog.Left{}, err
		}
		more := slices.DeleteFunc(now, func(object string) bool { return slices.Contains(before, object) })
		if len(more) == 0 || time.Now().After(deadline) {
			return eventlog.Left{Objects: more}, nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return eventlog.Left{}, context.Cause(ctx)
		}
	}
}
