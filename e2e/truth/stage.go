package truth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
)

const (
	// fieldManager owns what situations apply.
	fieldManager = "truth"
	// pause is the time between two reads of sources without notifications.
	pause = 20 * time.Millisecond
)

// A Stage is a cluster on which one situation after the other is played. It belongs to one goroutine.
type Stage struct {
	simulator  string // the program
	kubeconfig string
	kube       kubernetes.Interface
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	mapper     *restmapper.DeferredDiscoveryRESTMapper
	http       *http.Client
	metricsURL string
	view       *view
	empty      *inventory
}

// NewStage makes a stage of a cluster that is empty except for its own objects. simulator is the program elastic-sim.
// stop ends the goroutines of the stage.
func NewStage(ctx context.Context, cluster *simcluster.Cluster, simulator string) (stage *Stage, stop func(), err error) {
	config, err := cluster.Config()
	if err != nil {
		return nil, nil, err
	}
	status, err := cluster.Status()
	if err != nil {
		return nil, nil, err
	}
	config.WarningHandlerWithContext = rest.NoWarnings{} // situations contain deprecated fields
	s := &Stage{
		simulator: simulator, kubeconfig: cluster.Kubeconfig,
		metricsURL: fmt.Sprintf("https://127.0.0.1:%d/metrics", status.Ports.Scheduler),
	}
	if s.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, nil, err
	}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, nil, err
	}
	if s.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, nil, err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	if s.kube, err = kubernetes.NewForConfig(protobuf); err != nil {
		return nil, nil, err
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.kube.Discovery()))
	ctx, cancel := context.WithCancel(ctx)
	if s.view, err = newView(s.kube, s.dynamic, s.mapper); err != nil {
		cancel()
		return nil, nil, err
	}
	ended := s.view.run(ctx)
	stop = func() {
		cancel()
		ended()
	}
	if err := s.furnish(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	return s, stop, nil
}

// furnish creates what all situations have: the PriorityClasses and the second namespace. These are then the contents
// of an empty stage.
func (s *Stage) furnish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	if err := s.apply(ctx, furniture()); err != nil {
		return err
	}
	if err := s.view.sync(ctx); err != nil {
		return err
	}
	if err := s.Settle(ctx); err != nil {
		return err
	}
	var err error
	s.empty, err = s.takeInventory(ctx)
	return err
}

// classes are the PriorityClasses of every situation, by their value.
var classes = map[string]int64{"low": 1000, "mid": 5000, "high": 1_000_000}

// secondNamespace exists besides default.
const secondNamespace = "team"

func furniture() []*unstructured.Unstructured {
	objects := []*unstructured.Unstructured{newObject("v1", "Namespace", secondNamespace, nil)}
	for name, value := range classes {
		objects = append(objects, newObject("scheduling.k8s.io/v1", "PriorityClass", name, map[string]any{"value": value}))
	}
	return objects
}

// newObject is an object with these fields besides its name.
func newObject(apiVersion, kind, name string, fields map[string]any) *unstructured.Unstructured {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	maps.Copy(object, fields)
	return &unstructured.Unstructured{Object: object}
}

// apply makes objects, or changes those that are there, one after the other, as `kubectl apply` does with a file: it
// continues where one is refused.
func (s *Stage) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	defer s.view.touch() // what comes of it is still to come
	var refused error
	for _, object := range objects {
		if err := s.applyOne(ctx, object); err != nil {
			refused = errors.Join(refused, fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return refused
}

func (s *Stage) applyOne(ctx context.Context, object *unstructured.Unstructured) error {
	kind, err := s.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	object = object.DeepCopy()
	var objects dynamic.ResourceInterface = s.dynamic.Resource(kind.Resource)
	if kind.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(metav1.NamespaceDefault)
		}
		objects = s.dynamic.Resource(kind.Resource).Namespace(object.GetNamespace())
	}
	applied, err := objects.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		applied, err = objects.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	}
	if err == nil {
		s.view.expect(object.GetKind(), applied.GetResourceVersion())
	}
	return err
}
