package truth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// An inventory is the list of objects in a cluster.
type inventory struct {
	kinds      []schema.GroupVersionResource
	objects    map[identity]metav1.ObjectMeta
	nodes      map[string]*corev1.Node
	namespaces map[string]*corev1.Namespace
}

// identity identifies an object.
type identity struct {
	kind            schema.GroupVersionResource
	namespace, name string
}

func (i identity) String() string {
	return fmt.Sprintf("%s %s/%s", i.kind.Resource, i.namespace, i.name)
}

// unkept are kinds of which objects come and go by themselves.
var unkept = map[string]bool{"events": true, "leases": true, "controllerrevisions": true, "endpoints": true, "endpointslices": true}

// used are kinds of which others make use: they are taken away last.
var used = map[string]bool{"localqueues": true, "admissionchecks": true, "clusterqueues": true, "resourceflavors": true, "cohorts": true, "topologies": true}

// takeInventory notes everything that is in the cluster.
func (s *Stage) takeInventory(ctx context.Context) (*inventory, error) {
	i := &inventory{nodes: map[string]*corev1.Node{}, namespaces: map[string]*corev1.Namespace{}}
	lists, err := s.kube.Discovery().ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			if !unkept[resource.Name] {
				i.kinds = append(i.kinds, group.WithResource(resource.Name))
			}
		}
	}
	if i.objects, err = s.listed(ctx, i.kinds); err != nil {
		return nil, err
	}
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for n := range nodes.Items {
		i.nodes[nodes.Items[n].Name] = &nodes.Items[n]
	}
	namespaces, err := s.kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for n := range namespaces.Items {
		i.namespaces[namespaces.Items[n].Name] = &namespaces.Items[n]
	}
	return i, nil
}

// listed are all objects of some kinds.
func (s *Stage) listed(ctx context.Context, kinds []schema.GroupVersionResource) (map[identity]metav1.ObjectMeta, error) {
	found := map[identity]metav1.ObjectMeta{}
	for _, kind := range kinds {
		list, err := s.metadata.Resource(kind).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Resource, err)
		}
		for i := range list.Items {
			found[identity{kind, list.Items[i].Namespace, list.Items[i].Name}] = list.Items[i].ObjectMeta
		}
	}
	return found, nil
}

// errUnclean means that a stage cannot be used any more.
var errUnclean = errors.New("the cluster is not as it was")

// Clean takes away everything that was not there when the stage was empty, puts nodes and namespaces back as they were,
// and waits until all of that has happened.
func (s *Stage) Clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	if err := s.restore(ctx); err != nil {
		return err
	}
	err := await.Until(ctx, "the cluster is empty", pause, func(ctx context.Context) error {
		now, err := s.listed(ctx, s.empty.kinds)
		if err != nil {
			return err
		}
		var left []string
		inUse := slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(object identity) bool {
			_, stays := s.empty.objects[object]
			return !stays && !used[object.kind.Resource]
		})
		for object, is := range now {
			if _, stays := s.empty.objects[object]; stays {
				continue
			}
			left = append(left, remaining(object, is))
			if used[object.kind.Resource] && inUse {
				continue
			}
			if err := s.remove(ctx, object); err != nil {
				return err
			}
		}
		if len(left) > 0 {
			slices.Sort(left)
			return fmt.Errorf("there is still %s", strings.Join(left, ", "))
		}
		queues, err := s.schedulerQueues(ctx)
		if err == nil && slices.ContainsFunc(slices.Collect(maps.Values(queues)), func(n int) bool { return n > 0 }) {
			err = fmt.Errorf("the scheduler has %v", queues)
		}
		return errors.Join(err, s.removeEvents(ctx))
	})
	if err == nil {
		s.view.touch() // not all that was taken away is watched
		err = s.settle(ctx, s.view.empties)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnclean, err)
	}
	s.view.forget()
	return nil
}

// remaining is an object that is still there, and what keeps it.
func remaining(object identity, is metav1.ObjectMeta) string {
	if is.DeletionTimestamp == nil {
		return object.String()
	}
	return fmt.Sprintf("%s (it is being deleted, and has finalizers %v and owners %v)", object, is.Finalizers, is.OwnerReferences)
}

// remove deletes an object immediately, with the objects that it owns.
func (s *Stage) remove(ctx context.Context, object identity) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationBackground)}
	err := s.metadata.Resource(object.kind).Namespace(object.namespace).Delete(ctx, object.name, now)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a namespace that is going may not be deleted again
		return nil
	}
	return err
}

// removeEvents keeps those of one situation from being read in the next one.
func (s *Stage) removeEvents(ctx context.Context) error {
	for namespace := range s.empty.namespaces {
		if err := s.kube.CoreV1().Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// restore restores the objects that situations change but do not create.
func (s *Stage) restore(ctx context.Context) error {
	for name, was := range s.empty.nodes {
		is, err := s.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(is.Labels, was.Labels) || !equality.Semantic.DeepEqual(is.Spec, was.Spec) {
			is.Labels, is.Spec = was.Labels, was.Spec
			if _, err := s.kube.CoreV1().Nodes().Update(ctx, is, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
				return err
			}
		}
	}
	for name, was := range s.empty.namespaces {
		is, err := s.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !equality.Semantic.DeepEqual(is.Labels, was.Labels) {
			is.Labels = was.Labels
			if _, err := s.kube.CoreV1().Namespaces().Update(ctx, is, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
				return err
			}
		}
	}
	return nil
}
