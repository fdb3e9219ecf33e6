package cluster

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is a typed Kubernetes object, such as *batchv1.Job.
type Object interface {
	metav1.Object
	runtime.Object
}

// Resource is where objects of one kind live. Every typed client of client-go is one:
// client.Kubernetes().BatchV1().Jobs(namespace) is a Resource[*batchv1.Job], client.Kueue().ClusterQueues() one of
// *kueue.ClusterQueue.
type Resource[T Object] interface {
	Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Patch(ctx context.Context, name string, patch types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// Listing is where lists of one kind come from. The typed clients of client-go are that too.
type Listing[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Ref names an object in messages.
type Ref struct {
	Kind      string // "PriorityClass"
	Namespace string // "" for a cluster-wide kind
	Name      string // "" for all of the kind
}

// String is "PriorityClass high-priority" or "Job default/low-prio-job".
func (r Ref) String() string {
	switch {
	case r.Name == "" && r.Namespace == "":
		return r.Kind + " objects"
	case r.Name == "":
		return r.Kind + " objects in namespace " + r.Namespace
	case r.Namespace == "":
		return r.Kind + " " + r.Name
	default:
		return r.Kind + " " + r.Namespace + "/" + r.Name
	}
}

// refOf names the object called name in the given resource.
func refOf[T Object](resource any, name string) Ref {
	ref := Ref{Kind: reflect.TypeFor[T]().Elem().Name(), Name: name}
	if namespaced, ok := resource.(interface{ GetNamespace() string }); ok {
		ref.Namespace = namespaced.GetNamespace()
	}
	return ref
}

// Get reads one object. A missing one is an error for which apierrors.IsNotFound holds.
func Get[T Object](ctx context.Context, c *Client, resource Resource[T], name string) (T, error) {
	if err := c.Verify(ctx); err != nil {
		var none T
		return none, err
	}
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	return object, c.Wrap("get", refOf[T](resource, name), err)
}

// ServesGroup reports whether the API server knows an API group, in whatever version. It says yes where it cannot be
// found out.
func ServesGroup(ctx context.Context, c *Client, group string) bool {
	err := c.kube.Discovery().RESTClient().Get().AbsPath("/apis", group).Do(ctx).Error()
	return !apierrors.IsNotFound(err)
}
