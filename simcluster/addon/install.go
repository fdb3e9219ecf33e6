package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

const (
	// fieldManager owns the fields of what is installed.
	fieldManager = "simcluster"
	// parallel is how many objects are applied at a time.
	parallel   = 8
	servePause = 10 * time.Millisecond
)

// Install applies adapted manifests server-side, as an administrator, and returns when the API server serves the kinds
// that they define to the add-on's own account. An established definition and a bound role take effect a moment later; a
// controller that starts before ends, because discovery lists no such kind, or backs off for long. It may be repeated.
func Install(ctx context.Context, admin, own *rest.Config, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	var definitions []*unstructured.Unstructured
	// What others are put into comes first.
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			if err := apply(ctx, client, object); err != nil {
				return err
			}
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, object := range objects {
		switch object.GetKind() {
		case "Namespace":
			continue
		case "CustomResourceDefinition":
			definitions = append(definitions, object)
		}
		group.Go(func() error { return apply(groupCtx, client, object) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return awaitServed(ctx, own, definitions)
}

// apply creates or changes an object, server-side: a definition may be too large for the annotation that client-side
// apply keeps. On a busy machine the API server does not get through a large definition in the time that it gives itself,
// and does when it is asked again.
func apply(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	objects := client.Resource(resource).Namespace(object.GetNamespace())
	err := retry.OnError(retry.DefaultBackoff, apierrors.IsTimeout, func() error {
		_, err := objects.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// awaitServed waits until an account finds the kinds of definitions by discovery, and may list their objects.
func awaitServed(ctx context.Context, own *rest.Config, definitions []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return err
	}
	lists, err := discovery.NewDiscoveryClientForConfig(own)
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		resource, err := served(definition)
		if err != nil {
			return fmt.Errorf("%s: %w", definition.GetName(), err)
		}
		err = await.Until(ctx, "the API server serves "+definition.GetName(), servePause, func(ctx context.Context) error {
			if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return err
			}
			_, groups, err := lists.ServerGroupsAndResources()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(groups, func(list *metav1.APIResourceList) bool {
				return list.GroupVersion == resource.GroupVersion().String() &&
					slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource })
			}) {
				return errors.New("discovery does not list it")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// served is a definition's resource, in the version in which it is stored: that needs no conversion, for which the
// add-on would have to run already.
func served(definition *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	group, _, errGroup := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, errPlural := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, errVersions := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err := errors.Join(errGroup, errPlural, errVersions); err != nil {
		return schema.GroupVersionResource{}, err
	}
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			name, _ := version["name"].(string)
			return schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, nil
		}
	}
	return schema.GroupVersionResource{}, errors.New("no version of it is stored")
}
