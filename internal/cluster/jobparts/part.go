// Package jobparts creates, finds and deletes the objects of one job: a batch/v1 Job that owns all others, and its
// pods. internal/api/trainingjob and internal/api/task decide which objects these are and what they contain.
package jobparts

import (
	"context"
	"fmt"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
)

// Part does to one of a job's objects what package cluster does to objects of its kind, with the same errors.
type Part struct {
	Create func(ctx context.Context) error
	Get    func(ctx context.Context) (metav1.Object, error)
	// Metadata is got without what the object holds.
	Metadata func(ctx context.Context) (metav1.Object, error)
	Delete   func(ctx context.Context, uid apitypes.UID) error
	Patch    func(ctx context.Context, merge map[string]any) error // a JSON merge patch
}

// Of is for the object with this one's kind, namespace and name.
func Of(client *cluster.Client, object trainingjob.Object) Part {
	kube, namespace := client.Kubernetes(), object.GetNamespace()
	switch object := object.(type) {
	case *batchv1.Job:
		return partOf(client, kube.BatchV1().Jobs(namespace), batchv1.SchemeGroupVersion.WithResource("jobs"), object)
	case *corev1.ConfigMap:
		return partOf(client, kube.CoreV1().ConfigMaps(namespace), corev1.SchemeGroupVersion.WithResource("configmaps"), object)
	case *corev1.Secret:
		return partOf(client, kube.CoreV1().Secrets(namespace), corev1.SchemeGroupVersion.WithResource("secrets"), object)
	case *corev1.ServiceAccount:
		return partOf(client, kube.CoreV1().ServiceAccounts(namespace), corev1.SchemeGroupVersion.WithResource("serviceaccounts"), object)
	case *corev1.Service:
		return partOf(client, kube.CoreV1().Services(namespace), corev1.SchemeGroupVersion.WithResource("services"), object)
	case *rbacv1.Role:
		return partOf(client, kube.RbacV1().Roles(namespace), rbacv1.SchemeGroupVersion.WithResource("roles"), object)
	case *rbacv1.RoleBinding:
		return partOf(client, kube.RbacV1().RoleBindings(namespace), rbacv1.SchemeGroupVersion.WithResource("rolebindings"), object)
	case *coordinationv1.Lease:
		return partOf(client, kube.CoordinationV1().Leases(namespace), coordinationv1.SchemeGroupVersion.WithResource("leases"), object)
	default:
		panic(fmt.Sprintf("a job has no %T", object)) // the Parts of both kinds of jobs and this switch are one list
	}
}

// Ref names an object that has a kind of a Go type of its own.
func Ref(part metav1.Object) cluster.Ref {
	return cluster.Ref{Kind: reflect.TypeOf(part).Elem().Name(), Namespace: part.GetNamespace(), Name: part.GetName()}
}

func partOf[T cluster.Object](client *cluster.Client, resource cluster.Resource[T], of schema.GroupVersionResource, object T) Part {
	name := object.GetName()
	return Part{
		Create: func(ctx context.Context) error {
			_, err := cluster.Create(ctx, client, resource, object)
			return err
		},
		Get: func(ctx context.Context) (metav1.Object, error) {
			return cluster.Get(ctx, client, resource, name)
		},
		Metadata: func(ctx context.Context) (metav1.Object, error) {
			return cluster.GetMetadata(ctx, client, of, Ref(object))
		},
		Delete: func(ctx context.Context, uid apitypes.UID) error {
			return cluster.Delete(ctx, client, resource, name, uid, metav1.DeletePropagationBackground)
		},
		Patch: func(ctx context.Context, merge map[string]any) error {
			return cluster.Merge(ctx, client, resource, name, merge)
		},
	}
}
