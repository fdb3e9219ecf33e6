// Package cluster is the provider's only access to API servers. It connects, creates, applies, deletes and waits, and
// explains errors in sentences.
//
// It uses one transport for the whole process. It repeats a request if the server asks for that, within the caller's
// context, and reports an unreachable server within ten seconds. Create never adopts an existing object. Objects that
// were recreated under the same name are neither changed nor deleted. Apply overwrites fields of other field managers,
// unless its caller's Check refuses that. The callers decide what the objects mean and in which order they are created.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
)

// Client is a connection to one cluster. It is safe for concurrent use.
type Client struct {
	config Config
	host   string
	kube   kubernetes.Interface
	kueue  *kueueclient.Client
	// metadata reads of any kind what all objects have.
	metadata metadata.Interface
	kinds    runtime.ObjectTyper // of every Go type that kube and kueue handle

	http *http.Client // that of all three clients

	rightsMutex sync.Mutex
	rightsIn    map[string][]rbacv1.PolicyRule // by namespace; guarded by rightsMutex

	identity    sync.Mutex // held while the cluster's identity is being requested
	verified    bool       // the cluster is the expected one; guarded by identity
	isAPIServer bool       // the server has answered as an API server does; guarded by identity
}

// New reads the files that the configuration names and makes a client. It sends no request; its error is ErrNoCluster
// or a ConfigError.
func New(config Config) (*Client, error) {
	config.FieldManager = cmp.Or(config.FieldManager, DefaultFieldManager)
	restConfig, err := restConfig(config)
	if errors.Is(err, ErrNoCluster) {
		return nil, err
	}
	if err != nil {
		return nil, &ConfigError{Err: err}
	}
	httpClient, err := rest.HTTPClientFor(restConfig)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("connection to the cluster at %s: %w", restConfig.Host, err)}
	}
	if restConfig.QPS > 0 { // one limit for all clients
		restConfig.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(restConfig.QPS, restConfig.Burst)
	}
	kube, err := kubernetes.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("connection to the cluster at %s: %w", restConfig.Host, err)}
	}
	kueue, err := kueueclient.New(restConfig, httpClient)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("connection to the cluster at %s: %w", restConfig.Host, err)}
	}
	partial, err := metadata.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return nil, &ConfigError{Err: fmt.Errorf("connection to the cluster at %s: %w", restConfig.Host, err)}
	}
	return &Client{
		config: config, host: restConfig.Host, kube: kube, kueue: kueue, metadata: partial,
		kinds: runtime.MultiObjectTyper{scheme.Scheme, kueue.Kinds()}, http: httpClient,
	}, nil
}

// Kubernetes is the typed client. Its requests are retried and bounded like all others of this package, but its
// errors are the API server's own: pass them through Wrap before Explain.
func (c *Client) Kubernetes() kubernetes.Interface { return c.kube }

// Kueue is the typed client for Kueue's objects, with the same connection and the same properties. It can be requested
// before the cluster has Kueue.
func (c *Client) Kueue() *kueueclient.Client { return c.kueue }

// Host is the API server's address, for messages.
func (c *Client) Host() string { return c.host }

// FieldManager is the name under which this client owns fields.
func (c *Client) FieldManager() string { return c.config.FieldManager }

// ForcesConflicts reports whether changes that others have made since a plan may be overwritten.
func (c *Client) ForcesConflicts() bool { return c.config.ForceConflicts }

// HidesPodLogs reports whether what pods have printed is not to be shown.
func (c *Client) HidesPodLogs() bool { return c.config.HidePodLogs }

// Verify asks the cluster for its identity, once, when the configuration expects one. Every function of this package that
// reads or writes objects calls it; callers that use Kubernetes directly to write call it first.
func (c *Client) Verify(ctx context.Context) error {
	if c.config.ExpectedClusterUID == "" {
		return nil
	}
	if err := c.verify(ctx); err != nil {
		return c.Wrap("get", Ref{Kind: "Namespace", Name: metav1.NamespaceSystem}, err)
	}
	return nil
}

func (c *Client) verify(ctx context.Context) error {
	c.identity.Lock()
	defer c.identity.Unlock()
	if c.verified {
		return nil
	}
	namespace, err := c.kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := string(namespace.UID); got != c.config.ExpectedClusterUID {
		return &WrongClusterError{Host: c.host, Expected: c.config.ExpectedClusterUID, Got: got}
	}
	c.verified = true
	return nil
}

// Wrap reports what was attempted on what, for Explain. A nil error stays nil, and a wrapped one stays as it is. An
// answer that no API server gives becomes a NotAPIServerError where the server is none.
func (c *Client) Wrap(verb string, ref Ref, err error) error {
	var already *Error
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &Error{Verb: verb, Ref: ref, Host: c.host, Err: c.withMissing(c.checked(err))}
}
