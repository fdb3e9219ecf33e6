// Package client is a typed client for Kueue's objects. Its resources are those of client-go (gentype) with a REST
// client for the one group and version. It sends no discovery requests, so the CRDs may be installed later.
package client

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Client is where Kueue's objects are. It is safe for concurrent use.
type Client struct {
	rest       rest.Interface
	scheme     *runtime.Scheme
	parameters runtime.ParameterCodec
}

// Resource is where objects of one kind are; T is a pointer to the kind and L to its list.
type Resource[T object, L runtime.Object] = *gentype.ClientWithList[T, L]

type object interface {
	metav1.Object
	runtime.Object
}

// NewForConfig is New with an HTTP client of its own.
func NewForConfig(config *rest.Config) (*Client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("client for %s at %s: %w", kueue.SchemeGroupVersion, config.Host, err)
	}
	return New(config, httpClient)
}

// New makes a client for the cluster of a configuration. httpClient is rest.HTTPClientFor of the same configuration, or
// one that other clients of the cluster use too. It sends no request.
func New(config *rest.Config, httpClient *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // the server's Status
	if err := kueue.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("kinds of %s: %w", kueue.SchemeGroupVersion, err)
	}
	ours, version := rest.CopyConfig(config), kueue.SchemeGroupVersion
	ours.APIPath = "/apis"
	ours.GroupVersion = &version
	ours.ContentType, ours.AcceptContentTypes = runtime.ContentTypeJSON, "" // custom resources have no protobuf
	ours.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(scheme, serializer.NewCodecFactory(scheme)).WithoutConversion()
	restClient, err := rest.RESTClientForConfigAndClient(ours, httpClient)
	if err != nil {
		return nil, fmt.Errorf("client for %s at %s: %w", kueue.SchemeGroupVersion, config.Host, err)
	}
	return &Client{rest: restClient, scheme: scheme, parameters: runtime.NewParameterCodec(scheme)}, nil
}

// Kinds are the group, version and kind of this client's Go types.
func (c *Client) Kinds() *runtime.Scheme { return c.scheme }

// RESTClient is what the resources send their requests with.
func (c *Client) RESTClient() rest.Interface { return c.rest }

// AdmissionChecks are cluster-wide.
func (c *Client) AdmissionChecks() Resource[*kueue.AdmissionCheck, *kueue.AdmissionCheckList] {
	return resource[kueue.AdmissionCheck, kueue.AdmissionCheckList](c, "admissionchecks", "")
}

// ClusterQueues are cluster-wide.
func (c *Client) ClusterQueues() Resource[*kueue.ClusterQueue, *kueue.ClusterQueueList] {
	return resource[kueue.ClusterQueue, kueue.ClusterQueueList](c, "clusterqueues", "")
}

// Cohorts are cluster-wide.
func (c *Client) Cohorts() Resource[*kueue.Cohort, *kueue.CohortList] {
	return resource[kueue.Cohort, kueue.CohortList](c, "cohorts", "")
}

// LocalQueues of a namespace; "" to list those of all.
func (c *Client) LocalQueues(namespace string) Resource[*kueue.LocalQueue, *kueue.LocalQueueList] {
	return resource[kueue.LocalQueue, kueue.LocalQueueList](c, "localqueues", namespace)
}

// ResourceFlavors are cluster-wide.
func (c *Client) ResourceFlavors() Resource[*kueue.ResourceFlavor, *kueue.ResourceFlavorList] {
	return resource[kueue.ResourceFlavor, kueue.ResourceFlavorList](c, "resourceflavors", "")
}

// Topologies are cluster-wide.
func (c *Client) Topologies() Resource[*kueue.Topology, *kueue.TopologyList] {
	return resource[kueue.Topology, kueue.TopologyList](c, "topologies", "")
}

// Workloads of a namespace; "" to list those of all.
func (c *Client) Workloads(namespace string) Resource[*kueue.Workload, *kueue.WorkloadList] {
	return resource[kueue.Workload, kueue.WorkloadList](c, "workloads", namespace)
}

// WorkloadPriorityClasses are cluster-wide.
func (c *Client) WorkloadPriorityClasses() Resource[*kueue.WorkloadPriorityClass, *kueue.WorkloadPriorityClassList] {
	return resource[kueue.WorkloadPriorityClass, kueue.WorkloadPriorityClassList](c, "workloadpriorityclasses", "")
}

// resource is where objects of the Go type O are, whose plural name and namespace are given.
func resource[O, M any, T pointer[O], L listPointer[M]](c *Client, plural, namespace string) Resource[T, L] {
	return gentype.NewClientWithList[T, L](plural, c.rest, c.parameters, namespace, func() T { return new(O) }, func() L { return new(M) })
}

type pointer[O any] interface {
	*O
	object
}

type listPointer[M any] interface {
	*M
	runtime.Object
}
