package provider

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/cluster"
	"github.com/elastic-training/terraform-provider-elastic/internal/provider/apifield"
)

// lookTimeout bounds what looking for names may cost a plan, however slow or far the cluster is.
const lookTimeout = 3 * time.Second

var errSilentCluster = errors.New("the cluster does not respond")

// refKind is a kind of object that others refer to by name.
type refKind string

const (
	aClusterQueue          refKind = "ClusterQueue"
	aLocalQueue            refKind = "LocalQueue"
	aResourceFlavor        refKind = "ResourceFlavor"
	aCohort                refKind = "Cohort"
	aTopology              refKind = "Topology"
	anAdmissionCheck       refKind = "AdmissionCheck"
	aWorkloadPriorityClass refKind = "WorkloadPriorityClass"
	aPriorityClass         refKind = "PriorityClass"
)

// resourceType is the resource that makes objects of the kind.
func (r refKind) resourceType() string { return TypeName + "_" + apifield.Snake(string(r)) }

// reference names an object.
type reference struct {
	kind      refKind
	namespace string // "" for what is in none
	name      string
}

// plannedAttributes are the attributes of an object that plans of other objects need; the kind decides which fields are
// set.
type plannedAttributes struct {
	neverPreempts bool   // of a ClusterQueue: withinClusterQueue is Never
	clusterQueue  string // of a LocalQueue
	value         int32  // of a WorkloadPriorityClass or a PriorityClass
	isDefault     bool   // of a PriorityClass: it is that of pods without a class
}

// planned is the information about the objects of a plan: those that this process has planned so far, and those in the
// cluster. Terraform plans the objects that an object refers to before the object, in the same process. Only a name
// that the configuration does not reference as a resource can therefore be missing here although the configuration
// creates it.
//
// The provider reads the cluster only for names that were not planned, once per kind and namespace, and never for
// longer than lookTimeout; if it does not answer, no object counts as missing.
type planned struct {
	mu          sync.Mutex
	attributes  map[reference]plannedAttributes
	objects     map[reference]cluster.Object // those of attributes, as planned; guarded by mu
	queued      []queued                     // guarded by mu
	catalogues  map[reference]*catalogue     // without name: one per kind and namespace; guarded by mu
	warned      map[reference]bool           // ClusterQueues with a warning; guarded by mu
	unreachable bool                         // the cluster does not answer; guarded by mu
	nodes       nodeCatalogue
}

// catalogue is the cluster's list of a kind in a namespace.
type catalogue struct {
	once       sync.Once
	attributes map[string]plannedAttributes
	err        error
}

func newPlanned() *planned {
	return &planned{
		attributes: map[reference]plannedAttributes{}, objects: map[reference]cluster.Object{},
		catalogues: map[reference]*catalogue{}, warned: map[reference]bool{},
	}
}

// addPlanned records an object that will exist, for the plans of those that refer to it. A resource calls it from
// ModifyPlan, also when nothing changes.
func (c *connection) addPlanned(object reference, f plannedAttributes) {
	c.planned.mu.Lock()
	defer c.planned.mu.Unlock()
	c.planned.attributes[object] = f
}

// plansObject notes what an object will be, for forecasts.
func (c *connection) plansObject(name reference, object cluster.Object) {
	c.planned.mu.Lock()
	defer c.planned.mu.Unlock()
	c.planned.objects[name] = object
}

// markUnreachable notes that the cluster does not answer.
func (p *planned) markUnreachable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unreachable = true
}

// isSilent reports whether the cluster has failed to answer an earlier request.
func (p *planned) isUnreachable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unreachable
}

// checkReference warns about the name of an object, given by the attribute at, that is neither in the cluster nor was
// planned before. It never fails, and reports nothing if that is not certain. An empty name refers to nothing.
// otherwise is a sentence about the effect of the missing object, such as "The task waits until it exists.".
func (c *connection) checkReference(ctx context.Context, at path.Path, to reference, otherwise string) diag.Diagnostics {
	var diags diag.Diagnostics
	if to.name == "" {
		return diags
	}
	if _, found, certain := c.findReference(ctx, to); found || !certain {
		return diags
	}
	where := ""
	if to.namespace != "" {
		where = " in namespace " + to.namespace
	}
	diags.AddAttributeWarning(at, fmt.Sprintf("%s %s not found", to.kind, to.name), fmt.Sprintf(
		"%s refers to %s %q%s, which does not exist and is not planned before this resource. If this configuration creates it, refer to the resource "+
			"instead of its name (%s.NAME.name), so that it is created first. %s",
		at, to.kind, to.name, where, to.kind.resourceType(), otherwise))
	return diags
}

// findReference finds an object among those planned and, if it is not there, in the cluster. Not found is certain only
// where the cluster has answered.
func (c *connection) findReference(ctx context.Context, object reference) (f plannedAttributes, found, certain bool) {
	c.planned.mu.Lock()
	f, found = c.planned.attributes[object]
	c.planned.mu.Unlock()
	if found {
		return f, true, true
	}
	listed := c.catalogue(ctx, object.kind, object.namespace)
	f, found = listed.attributes[object.name]
	return f, found, listed.err == nil
}

// catalogue is the cluster's list of a kind in a namespace; it is requested once.
func (c *connection) catalogue(ctx context.Context, kind refKind, namespace string) *catalogue {
	c.planned.mu.Lock()
	if c.planned.unreachable {
		c.planned.mu.Unlock()
		return &catalogue{err: errSilentCluster}
	}
	key := reference{kind: kind, namespace: namespace}
	listed, ok := c.planned.catalogues[key]
	if !ok {
		listed = &catalogue{}
		c.planned.catalogues[key] = listed
	}
	c.planned.mu.Unlock()
	listed.once.Do(func() {
		client, diags := c.cluster()
		if diags.HasError() {
			listed.err = errSilentCluster
			return
		}
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		if listed.err = client.Verify(ctx); listed.err == nil {
			listed.attributes, listed.err = attributesByName(ctx, client, kind, namespace)
		}
		var answer apierrors.APIStatus
		if listed.err != nil && !errors.As(listed.err, &answer) {
			c.planned.markUnreachable()
		}
	})
	return listed
}

// attributesByName lists the objects of a kind.
func attributesByName(ctx context.Context, client *cluster.Client, kind refKind, namespace string) (map[string]plannedAttributes, error) {
	queues := client.Kueue()
	switch kind {
	case aClusterQueue:
		return listed(ctx, queues.ClusterQueues(), clusterQueueAttributes)
	case aLocalQueue:
		return listed(ctx, queues.LocalQueues(namespace), localQueueAttributes)
	case aResourceFlavor:
		return listed(ctx, queues.ResourceFlavors(), noAttributes[*kueue.ResourceFlavor])
	case aCohort:
		return listed(ctx, queues.Cohorts(), noAttributes[*kueue.Cohort])
	case aTopology:
		return listed(ctx, queues.Topologies(), noAttributes[*kueue.Topology])
	case anAdmissionCheck:
		return listed(ctx, queues.AdmissionChecks(), noAttributes[*kueue.AdmissionCheck])
	case aWorkloadPriorityClass:
		return listed(ctx, queues.WorkloadPriorityClasses(), workloadPriorityClassAttributes)
	case aPriorityClass:
		return listed(ctx, client.Kubernetes().SchedulingV1().PriorityClasses(), priorityClassAttributes)
	default:
		return nil, fmt.Errorf("no list of kind %s", kind)
	}
}

func listed[T cluster.Object, L runtime.Object](
	ctx context.Context, in cluster.Listing[L], read func(T) plannedAttributes,
) (map[string]plannedAttributes, error) {
	found, err := in.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	attributes := map[string]plannedAttributes{}
	err = meta.EachListItem(found, func(item runtime.Object) error {
		if object, ok := item.(T); ok {
			attributes[object.GetName()] = read(object)
		}
		return nil
	})
	return attributes, err
}

func noAttributes[T any](T) plannedAttributes { return plannedAttributes{} }

func localQueueAttributes(queue *kueue.LocalQueue) plannedAttributes {
	return plannedAttributes{clusterQueue: string(queue.Spec.ClusterQueue)}
}

func workloadPriorityClassAttributes(class *kueue.WorkloadPriorityClass) plannedAttributes {
	return plannedAttributes{value: class.Value}
}

func priorityClassAttributes(class *schedulingv1.PriorityClass) plannedAttributes {
	return plannedAttributes{value: class.Value, isDefault: class.GlobalDefault}
}

func clusterQueueAttributes(queue *kueue.ClusterQueue) plannedAttributes {
	preemption := queue.Spec.Preemption
	return plannedAttributes{neverPreempts: preemption == nil || preemption.WithinClusterQueue == "" || preemption.WithinClusterQueue == kueue.PreemptionPolicyNever}
}
