package provider

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

// jobPart does to one of a job's objects what the cluster package does to objects of its kind.
type jobPart struct {
	create func(ctx context.Context) error
	get    func(ctx context.Context) (metav1.Object, error)
	// metadata is got without what the object holds.
	metadata func(ctx context.Context) (metav1.Object, error)
	delete   func(ctx context.Context, uid apitypes.UID) error
	patch    func(ctx context.Context, merge map[string]any) error // a JSON merge patch
}

// part is for the object with this one's kind, namespace and name.
func (c *jobCluster) part(object trainingjob.Object) jobPart {
	kube, namespace := c.client.Kubernetes(), object.GetNamespace()
	switch object := object.(type) {
	case *batchv1.Job:
		return partOf(c.client, kube.BatchV1().Jobs(namespace), batchv1.SchemeGroupVersion.WithResource("jobs"), object)
	case *corev1.ConfigMap:
		return partOf(c.client, kube.CoreV1().ConfigMaps(namespace), corev1.SchemeGroupVersion.WithResource("configmaps"), object)
	case *corev1.Secret:
		return partOf(c.client, kube.CoreV1().Secrets(namespace), corev1.SchemeGroupVersion.WithResource("secrets"), object)
	case *corev1.ServiceAccount:
		return partOf(c.client, kube.CoreV1().ServiceAccounts(namespace), corev1.SchemeGroupVersion.WithResource("serviceaccounts"), object)
	case *corev1.Service:
		return partOf(c.client, kube.CoreV1().Services(namespace), corev1.SchemeGroupVersion.WithResource("services"), object)
	case *rbacv1.Role:
		return partOf(c.client, kube.RbacV1().Roles(namespace), rbacv1.SchemeGroupVersion.WithResource("roles"), object)
	case *rbacv1.RoleBinding:
		return partOf(c.client, kube.RbacV1().RoleBindings(namespace), rbacv1.SchemeGroupVersion.WithResource("rolebindings"), object)
	case *coordinationv1.Lease:
		return partOf(c.client, kube.CoordinationV1().Leases(namespace), coordinationv1.SchemeGroupVersion.WithResource("leases"), object)
	default:
		panic(fmt.Sprintf("a job has no %T", object)) // the Parts of both kinds of jobs and this switch are one list
	}
}

// refOfPart names an object that has a kind of a Go type of its own.
func refOfPart(part metav1.Object) cluster.Ref {
	return cluster.Ref{Kind: reflect.TypeOf(part).Elem().Name(), Namespace: part.GetNamespace(), Name: part.GetName()}
}

func partOf[T cluster.Object](client *cluster.Client, resource cluster.Resource[T], of schema.GroupVersionResource, object T) jobPart {
	name := object.GetName()
	return jobPart{
		create: func(ctx context.Context) error {
			_, err := cluster.Create(ctx, client, resource, object)
			return err
		},
		get: func(ctx context.Context) (metav1.Object, error) {
			return cluster.Get(ctx, client, resource, name)
		},
		metadata: func(ctx context.Context) (metav1.Object, error) {
			return cluster.GetMetadata(ctx, client, of, refOfPart(object))
		},
		delete: func(ctx context.Context, uid apitypes.UID) error {
			return cluster.Delete(ctx, client, resource, name, uid, metav1.DeletePropagationBackground)
		},
		patch: func(ctx context.Context, merge map[string]any) error {
			return cluster.Merge(ctx, client, resource, name, merge)
		},
	}
}
