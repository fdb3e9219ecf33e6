package fakekueue

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/quota"
)

// fieldManager owns what we write, as Kueue's kueue-admission does.
const fieldManager = "kueue-admission"

// A controller is the whole of it. Everything but the stores and the queue belongs to the goroutine of work.
type controller struct {
	log    *slog.Logger
	now    func() time.Time
	core   kubernetes.Interface
	kueue  *kueueclient.Client
	keys   workqueue.TypedRateLimitingInterface[key]
	engine *quota.Engine
	events recorders

	jobs        *store[*batchv1.Job]
	pods        *store[*corev1.Pod]
	namespaces  *store[*corev1.Namespace]
	limitRanges *store[*corev1.LimitRange]
	// allPods are all pods of the cluster; pods are those that the webhook marked.
	allPods         *store[*corev1.Pod]
	nodes           *store[*corev1.Node]
	topologies      *store[*kueue.Topology]
	podClasses      *store[*schedulingv1.PriorityClass]
	runtimeClasses  *store[*nodev1.RuntimeClass]
	workloads       *store[*kueue.Workload]
	clusterQueues   *store[*kueue.ClusterQueue]
	localQueues     *store[*kueue.LocalQueue]
	flavors         *store[*kueue.ResourceFlavor]
	cohorts         *store[*kueue.Cohort]
	checks          *store[*kueue.AdmissionCheck]
	workloadClasses *store[*kueue.WorkloadPriorityClass]

	// placing is true once there is a topology: only then where pods are is of interest.
	placing atomic.Bool
	// holding are the workloads that the engine knows, and whether it believes that they hold quota.
	holding map[types.NamespacedName]bool
	// locals are the LocalQueues as the engine knows them.
	locals map[types.NamespacedName]*kueue.LocalQueue
}

// Run installs Kueue's API, its roles and webhooks, and plays Kueue until ctx ends; it returns nil then. An error means
// that it could not begin: a file is missing, a port is taken, or the API server refuses what is installed.
func Run(ctx context.Context, config Config, log *slog.Logger) error {
	admin, err := connect(config.AdminKubeconfig)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(config.CAFile)
	if err != nil {
		return fmt.Errorf("the authority of the webhooks' certificate: %w", err)
	}
	began := time.Now()
	if err := install(ctx, admin); err != nil {
		return err
	}
	own, err := connect(config.Kubeconfig)
	if err != nil {
		return err
	}
	if err := awaitServed(ctx, own); err != nil {
		return err
	}
	log.InfoContext(ctx, "Kueue's API is served", "after", time.Since(began))
	c, err := newController(own, config.engine(), log)
	if err != nil {
		return err
	}
	server, err := newServer(config, c)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.serve(ctx) })
	group.Go(func() error {
		return c.run(ctx, func() error { return c.open(ctx, admin, config.WebhookPort, authority, server) })
	})
	return group.Wait()
}

// connect makes a configuration without client-go's own limit of five requests a second.
func connect(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	config.UserAgent = "kueue"
	return config, nil
}

func newController(config *rest.Config, engine quota.Config, log *slog.Logger) (*controller, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return nil, err
	}
	ours, err := kueueclient.New(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &controller{
		log:     log,
		now:     time.Now,
		core:    core,
		kueue:   ours,
		keys:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[key]()),
		engine:  quota.New(engine),
		holding: map[types.NamespacedName]bool{},
		locals:  map[types.NamespacedName]*kueue.LocalQueue{},
	}, nil
}

// open registers the webhooks, which is possible once everything that they ask for is known, and says that all is
// ready.
func (c *controller) open(ctx context.Context, admin *rest.Config, port int, authority []byte, server *server) error {
	client, err := dynamic.NewForConfig(admin)
	if err != nil {
		return err
	}
	for _, o := range []object{mutatingConfiguration(port, authority), validatingConfiguration(port, authority)} {
		if err := applyTyped(ctx, client, o); err != nil {
			return err
		}
	}
	c.keys.Add(key{kind: defaultNamespaces})
	server.ready.Store(true)
	c.log.InfoContext(ctx, "ready")
	return nil
}

// run fills the stores and the engine, calls synced, and works until ctx ends.
func (c *controller) run(parent context.Context, synced func() error) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	stopEvents, err := c.startEvents(ctx)
	if err != nil {
		return err
	}
	defer stopEvents()
	running, err := c.watch(ctx)
	if err != nil {
		return err
	}
	defer running.wait()
	defer cancel()
	if !cache.WaitForCacheSync(ctx.Done(), running.synced...) {
		return nil // signalled to stop
	}
	c.fillEngine()
	if err := synced(); err != nil {
		if parent.Err() != nil {
			return nil
		}
		return err
	}
	stop := context.AfterFunc(ctx, c.keys.ShutDown)
	defer stop()
	c.work(ctx)
	return nil
}

// recorders write events, each under the name of the part of Kueue that would.
type recorders struct {
	admission, workload, job, pod events.EventRecorder
}

// startEvents makes the recorders; the function it returns has what is still to be written written.
func (c *controller) startEvents(ctx context.Context) (func(), error) {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := kueue.AddToScheme(scheme); err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.core.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, err
	}
	c.events = recorders{
		admission: broadcaster.NewRecorder(scheme, fieldManager),
		workload:  broadcaster.NewRecorder(scheme, "kueue-workload-controller"),
		job:       broadcaster.NewRecorder(scheme, "batch/job-kueue-controller"),
		pod:       broadcaster.NewRecorder(scheme, "pod-kueue-controller"),
	}
	return broadcaster.Shutdown, nil
}
