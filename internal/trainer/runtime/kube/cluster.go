// Package kube is the master's access to Kubernetes: it creates, watches and deletes worker pods, keeps other masters
// away by a Lease, and writes status, Events and small models. It uses the verbs of trainingjob.MasterRules and no
// others. It also reads and writes what the ranks of a task's gang share, with the verbs of task.GangRules.
//
// Its scheme has only the types that it needs: the clientset would more than double the size of the
// trainer's binary.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
)

// serviceAccountDir is where Kubernetes mounts a pod's token.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// requestTimeout bounds one request; watches have their own.
const requestTimeout = 10 * time.Second

// Cluster is the API server as one job's master sees it.
type Cluster struct {
	Namespace string
	Pod       string // the master's
	Job       trainingjob.JobRef
	// Signed are the credentials with which ConfigMap NAME-job is signed; nil for a job that was created without a
	// signature.
	Signed *trainingjob.Credentials
	// Notice reports something to users; nil discards it.
	Notice func(coordinator.Notice)

	reported bool // the Job has the time of a checkpoint, or that there is none

	core, batch, coordination rest.Interface
	parameters                runtime.ParameterCodec
}

// Connect finds the API server and the Job of the calling master. root is put before the token's directory; it is
// "" in a container.
func Connect(ctx context.Context, root, jobName string) (*Cluster, error) {
	c, err := InPod(root)
	if err != nil {
		return nil, err
	}
	job := &job{}
	if err := c.get(ctx, c.batch, "jobs", jobName, job); err != nil {
		return nil, fmt.Errorf("read the master's own Job %s/%s: %w", c.Namespace, jobName, err)
	}
	c.Job = trainingjob.JobRef{Name: job.Name, Namespace: c.Namespace, UID: job.UID}
	_, c.reported = job.Annotations[trainingjob.AnnotationLastCheckpoint]
	return c, nil
}

// InPod finds the API server from the environment of a pod. root is put before the token's directory; it is "" in a
// container.
func InPod(root string) (*Cluster, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	pod, namespace := os.Getenv("MY_POD_NAME"), os.Getenv("MY_POD_NAMESPACE")
	if host == "" || port == "" || pod == "" || namespace == "" {
		return nil, errors.New("this command runs only in pods created by elastic_training_job or elastic_task: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, MY_POD_NAME or MY_POD_NAMESPACE is not set; on one machine, use `elastic-trainer train`")
	}
	return Dial(podConfig(root, host, port), namespace, pod)
}

// PodConfig is how a pod connects to the API server. root is as for InPod.
func PodConfig(root string) (*rest.Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("this command runs only in pods: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
	}
	return podConfig(root, host, port), nil
}

func podConfig(root, host, port string) *rest.Config {
	dir := filepath.Join(root, serviceAccountDir)
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerTokenFile: filepath.Join(dir, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "ca.crt")},
		QPS:             -1, // the server's API Priority and Fairness limits requests
		UserAgent:       "elastic-trainer",
	}
}

// Dial connects to the API server of a configuration as a pod of a namespace does.
func Dial(config *rest.Config, namespace, pod string) (*Cluster, error) {
	c := &Cluster{Namespace: namespace, Pod: pod}
	return c, c.dial(config)
}

// dial makes a client for each API group.
func (c *Cluster) dial(config *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, addJob, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	c.parameters = runtime.NewParameterCodec(scheme)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	for _, g := range []struct {
		into    *rest.Interface
		version schema.GroupVersion
		path    string
	}{
		{&c.core, corev1.SchemeGroupVersion, "/api"},
		{&c.batch, batchVersion, "/apis"},
		{&c.coordination, coordinationv1.SchemeGroupVersion, "/apis"},
	} {
		of := rest.CopyConfig(config)
		of.GroupVersion, of.APIPath = &g.version, g.path
		of.NegotiatedSerializer = codecs.WithoutConversion()
		of.ContentType, of.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
		if g.version == batchVersion { // job has no protobuf
			of.ContentType, of.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		}
		if *g.into, err = rest.RESTClientForConfigAndClient(of, client); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) get(ctx context.Context, client rest.Interface, resource, name string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return client.Get().Namespace(c.Namespace).Resource(resource).Name(name).Do(ctx).Into(into)
}

// ofWorkers selects the job's worker pods.
func (c *Cluster) ofWorkers(o *metav1.ListOptions) {
	o.LabelSelector = labels.Set{trainingjob.LabelJobUID: string(c.Job.UID), trainingjob.LabelRole: trainingjob.RoleWorker}.String()
}

func (c *Cluster) pods(ctx context.Context, of func(*metav1.ListOptions)) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options, pods := metav1.ListOptions{}, &corev1.PodList{}
	of(&options)
	err := c.core.Get().Namespace(c.Namespace).Resource("pods").VersionedParams(&options, c.parameters).Do(ctx).Into(pods)
	return pods, err
}

// informer lists and watches once it is run; it lists again after a stream that is cut or too old (410).
func (c *Cluster) informer(resource string, options func(*metav1.ListOptions), of runtime.Object, handler cache.ResourceEventHandler) cache.SharedInformer {
	informer := cache.NewSharedInformer(cache.NewFilteredListWatchFromClient(c.core, resource, c.Namespace, options), of, 0)
	if _, err := informer.AddEventHandler(handler); err != nil {
		panic(err) // only an informer that has stopped returns an error
	}
	return informer
}

// Config reads ConfigMap NAME-job as the job's creator wrote it; any other content is a trainingjob.ForgedError.
func (c *Cluster) Config(ctx context.Context) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{}
	name := trainingjob.ConfigMapName(c.Job.Name)
	if err := c.get(ctx, c.core, "configmaps", name, configMap); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", c.Namespace, name, err)
	}
	return configMap, c.verify(configMap)
}

func (c *Cluster) notify(n coordinator.Notice) {
	if c.Notice != nil {
		c.Notice(n)
	}
}

func (c *Cluster) verify(configMap *corev1.ConfigMap) error {
	if c.Signed == nil {
		return nil
	}
	return trainingjob.Verify(configMap, *c.Signed)
}

func (c *Cluster) patch(ctx context.Context, client rest.Interface, resource, name string, merge map[string]any) error {
	body, err := json.Marshal(merge)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return client.Patch(types.MergePatchType).Namespace(c.Namespace).Resource(resource).Name(name).Body(body).Do(ctx).Error()
}

// ServiceAddress is the address that workers connect to: see trainingjob.MasterAddress.
func (c *Cluster) ServiceAddress(ctx context.Context) (string, error) {
	service := &corev1.Service{}
	name := trainingjob.MasterName(c.Job.Name)
	if err := c.get(ctx, c.core, "services", name, service); err != nil {
		return "", fmt.Errorf("read Service %s/%s, by which workers reach their master: %w", c.Namespace, name, err)
	}
	return trainingjob.MasterAddress(service), nil
}

// batchVersion is the group and version of Jobs.
var batchVersion = schema.GroupVersion{Group: "batch", Version: "v1"}

// job is what a master reads of a Job. The types of k8s.io/api/batch/v1 contain those of several other groups, which would
// make the image of every worker half a megabyte larger.
type job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Suspend *bool `json:"suspend,omitempty"`
	} `json:"spec"`
}

func (j *job) suspended() bool { return j.Spec.Suspend != nil && *j.Spec.Suspend }

// DeepCopyObject copies a Job.
func (j *job) DeepCopyObject() runtime.Object {
	copied := *j
	j.DeepCopyInto(&copied.ObjectMeta)
	if j.Spec.Suspend != nil {
		copied.Spec.Suspend = new(*j.Spec.Suspend)
	}
	return &copied
}

func addJob(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(batchVersion.WithKind("Job"), &job{})
	metav1.AddToGroupVersion(scheme, batchVersion)
	return nil
}
