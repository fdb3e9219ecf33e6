package fakekubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/nodeagent"
)

// An agent is the kubelet of all simulated nodes.
type agent struct {
	config    nodeagent.Config
	log       *slog.Logger
	client    kubernetes.Interface
	objects   apiObjects
	method    mountMethod
	addresses *addressPool
	memory    *oomWatch
	podsDir   string
	logsDir   string
	pods      listers.PodLister
	services  listers.ServiceLister
	// nodeObjects are the nodes as the API server has them: others may change labels and what is allocatable.
	nodeObjects listers.NodeLister

	nodes map[string]*simulatedNode // not changed once it runs

	mu     sync.Mutex
	owners map[types.UID]*owner
}

// Run simulates cfg.Nodes until ctx ends, and returns nil then. On return no process
// it started is alive. An error means that it could not begin or continue: a directory,
// port or certificate is not to be had, or the API server cannot be reached at first.
func Run(ctx context.Context, cfg nodeagent.Config, log *slog.Logger) error {
	client, err := connect(cfg.Kubeconfig)
	if err != nil {
		return err
	}
	a := &agent{
		config:    cfg,
		log:       log,
		client:    client,
		objects:   apiObjects{client},
		addresses: newAddressPool(rand.Uint32()),
		memory:    newOOMWatch(),
		podsDir:   filepath.Join(cfg.Dir, "pods"),
		logsDir:   filepath.Join(cfg.Dir, "logs"),
		nodes:     map[string]*simulatedNode{},
		owners:    map[types.UID]*owner{},
	}
	for _, dir := range []string{cfg.Dir, a.podsDir, a.logsDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("node agent: state directory: %w", err)
		}
	}
	if a.method, err = chooseMountMethod(ctx, cfg.Mounts, cfg.Dir); err != nil {
		if cfg.Mounts == nodeagent.MountsNamespace {
			return fmt.Errorf("node agent: volumes were asked to be mounted, which the kernel does not permit: %w; use mounts=%s", err, nodeagent.MountsRewrite)
		}
		log.InfoContext(ctx, "the kernel permits no mounts: paths in commands and environment are rewritten instead, and "+rootVariable+" names the container's root", "reason", err)
	}
	log.InfoContext(ctx, "containers see their volumes by "+a.method.String())
	return a.run(ctx)
}

// connect makes a client without client-go's own limit of five requests a second.
func connect(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("node agent: kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = -1, -1
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "simulated-kubelet"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("node agent: client of %q: %w", kubeconfig, err)
	}
	return client, nil
}

// run has everything started, and stopped in the opposite order.
func (a *agent) run(parent context.Context) error {
	server, err := newKubeletServer(a)
	if err != nil {
		return err
	}
	defer server.listener.Close()
	control, err := listenControl(a.config.ControlSocket)
	if err != nil {
		return err
	}
	defer control.Close()

	group, ctx := errgroup.WithContext(parent)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: a.client.CoreV1().Events("")})
	for _, spec := range a.config.Nodes {
		events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: spec.Name})
		a.nodes[spec.Name] = &simulatedNode{spec: spec, events: events}
	}

	group.Go(func() error { a.memory.run(ctx); return nil })
	stopWatching, err := a.watch(ctx, broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kube-proxy"}))
	defer stopWatching()
	if err == nil {
		group.Go(func() error { return server.serve(ctx) })
		group.Go(func() error {
			return a.simulate(ctx, func() { group.Go(func() error { return a.serveControl(ctx, control) }) })
		})
	} else {
		group.Go(func() error { return err })
	}
	err = group.Wait()
	if parent.Err() != nil {
		return nil // it was signalled to end
	}
	return err
}

// watch starts the informers and the forwarding of services, and returns once they
// know what there is. stop ends them after ctx has ended.
func (a *agent) watch(ctx context.Context, proxyEvents record.EventRecorder) (stop func(), err error) {
	bound := informers.NewSharedInformerFactoryWithOptions(a.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	all := informers.NewSharedInformerFactory(a.client, 0)
	pods, services := bound.Core().V1().Pods(), all.Core().V1().Services()
	configMaps, secrets := all.Core().V1().ConfigMaps(), all.Core().V1().Secrets()
	nodes := all.Core().V1().Nodes()
	a.nodeObjects = nodes.Lister()
	synced := []cache.InformerSynced{nodes.Informer().HasSynced}
	a.pods, a.services = pods.Lister(), services.Lister()
	proxy := newServiceProxy(a.log, a.pods, proxyEvents)
	stop = func() {
		bound.Shutdown()
		all.Shutdown()
		proxy.close()
	}

	for _, r := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{pods.Informer(), a.podHandler()},
		{services.Informer(), proxy.handler()},
		{configMaps.Informer(), a.referenceHandler(func(r references) map[string]bool { return r.configMaps })},
		{secrets.Informer(), a.referenceHandler(func(r references) map[string]bool { return r.secrets })},
	} {
		registration, err := r.informer.AddEventHandler(r.handler)
		if err != nil {
			return stop, fmt.Errorf("node agent: watch: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	all.Start(ctx.Done())
	bound.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return stop, context.Cause(ctx)
	}
	return stop, nil
}

// simulate registers the nodes and runs their pods until ctx ends.
func (a *agent) simulate(ctx context.Context, registered func()) error {
	a.removeLeftovers()
	defer a.stopAll()
	var registering errgroup.Group
	registering.SetLimit(16) // enough to hide latency, for clusters of a thousand nodes
	for _, spec := range a.config.Nodes {
		registering.Go(func() error { return a.startNode(ctx, spec.Name) })
	}
	if err := registering.Wait(); err != nil {
		return err
	}
	a.log.InfoContext(ctx, "nodes are registered", "nodes", len(a.config.Nodes))
	registered()
	<-ctx.Done()
	return nil
}

// podHandler hands each pod's news to its owner.
func (a *agent) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { a.podChanged(o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { a.podChanged(o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				a.podGone(pod)
			}
		},
	}
}

func (a *agent) podChanged(pod *corev1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.owners[pod.UID]; o != nil {
		o.update(pod)
		return
	}
	if n := a.nodes[pod.Spec.NodeName]; n != nil && n.ctx != nil {
		a.own(n, pod)
	}
}

// own starts a pod's owner on a running node; a.mu is held.
func (a *agent) own(n *simulatedNode, pod *corev1.Pod) {
	ctx := n.ctx
	o := newOwner(a, n, pod)
	o.rejection = a.admit(ctx, n, pod)
	a.owners[pod.UID] = o
	n.work.Go(func() {
		o.run(ctx)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.owners[o.uid] == o {
			delete(a.owners, o.uid)
		}
	})
}

func (a *agent) podGone(pod *corev1.Pod) {
	a.mu.Lock()
	o := a.owners[pod.UID]
	delete(a.owners, pod.UID)
	n := a.nodes[pod.Spec.NodeName]
	a.mu.Unlock()
	switch {
	case o != nil:
		o.forget()
	case n != nil: // of a stopped node: nothing runs, but its directories are there
		a.removePodDirs(pod.UID, podLogDir(a.logsDir, pod.Namespace, pod.Name, pod.UID))
	}
}

// referenceHandler wakes the pods that use a config map or secret when it changes.
func (a *agent) referenceHandler(names func(references) map[string]bool) cache.ResourceEventHandler {
	wake := func(object any) {
		meta, err := cache.DeletionHandlingObjectToName(object)
		if err != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, o := range a.owners {
			if o.namespace == meta.Namespace && names(o.uses)[meta.Name] {
				o.referenceChanged()
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, o any) { wake(o) }, DeleteFunc: wake}
}

// ownerOf finds who runs a pod now.
func (a *agent) ownerOf(uid types.UID) *owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owners[uid]
}

// deletePod ends a pod's graceful deletion.
func (a *agent) deletePod(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var now int64
	err := a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone; a namesake is none of ours
	}
	return err
}

// removeLeftovers removes the directories of pods that ended while no agent ran.
func (a *agent) removeLeftovers() {
	pods, err := a.pods.List(labels.Everything())
	if err != nil {
		return
	}
	live := map[string]bool{}
	for _, pod := range pods {
		live[podDir(a.podsDir, pod.UID)] = true
		live[podLogDir(a.logsDir, pod.Namespace, pod.Name, pod.UID)] = true
	}
	for _, parent := range []string{a.podsDir, a.logsDir} {
		entries, err := os.ReadDir(parent)
		if err != nil {
			a.log.Warn("state directory not read", "error", err)
			continue
		}
		for _, entry := range entries {
			if dir := filepath.Join(parent, entry.Name()); !live[dir] {
				if err := removeAll(dir); err != nil {
					a.log.Warn("directory of a former pod not removed", "error", err)
				}
			}
		}
	}
}

func (a *agent) removePodDirs(uid types.UID, logs string) {
	for _, dir := range []string{podDir(a.podsDir, uid), logs} {
		if err := removeAll(dir); err != nil {
			a.log.Warn("directory of a pod not removed", "error", err)
		}
	}
}

// listenControl makes the Unix socket that nodeagent.Control talks to, for this user only.
func listenControl(path string) (net.Listener, error) {
	if path == "" {
		return nil, errors.New("node agent: no control socket is configured")
	}
	// One that an agent left that was killed.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("node agent: control socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("node agent: control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("node agent: control socket: %w", err)
	}
	return listener, nil
}

// shutdownTimeout is how long servers may finish what they are answering.
const shutdownTimeout = 2 * time.Second

// podDir is where a pod's volumes and containers' own directories are.
func podDir(podsDir string, uid types.UID) string { return filepath.Join(podsDir, string(uid)) }
