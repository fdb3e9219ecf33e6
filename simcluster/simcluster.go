// Package simcluster starts and stops embedded clusters (command simcluster) for tests and for programs such as the
// scenario runner.
//
// A cluster ends with the process that started it, for whatever reason that process ends, and leaves nothing behind.
// The package needs the simcluster program, which it builds unless $SIMCLUSTER_BIN names one; it does not link the
// program, so that test binaries stay small. Linux only; on other systems tests are skipped with a message that
// recommends kind.
package simcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	kueueclient "github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/client"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// ErrLinuxOnly is returned on other systems.
var ErrLinuxOnly = errors.New("the embedded cluster runs on Linux only; use kind instead (make e2e-kind), or a Linux container or virtual machine")

// Options declare a cluster. The zero value is three nodes of 4 CPU and 15 GiB, 3.92 CPU of them allocatable.
type Options struct {
	// Binary is the simcluster program; empty: $SIMCLUSTER_BIN, or else it is built (Binary function).
	Binary string
	// Dir is the state directory; empty: a temporary one, which Close removes.
	Dir string
	// Port is the API server's port on 127.0.0.1; 0: a free one.
	Port int
	// Nodes are the nodes; nil: those of the last start in Dir, or the default.
	Nodes []controlplane.NodeGroup
	// Images maps image names to executables, or to controlplane.HostImage; nil: those of the last start in Dir.
	Images map[string]string
	// Mounts is one of controlplane's Mounts constants; empty: that of the last start in Dir, or MountsAuto.
	Mounts string
	// Controllers are the controllers of other projects that run: names of package addon; nil: as at the last start in
	// Dir, or none.
	Controllers []string
	// KueueConfig is the path of Kueue's configuration; empty: as at the last start in Dir, or that of its release.
	KueueConfig string
	// KueueFeatureGates are feature gates of Kueue, such as "PriorityBoost=true"; nil: as at the last start in Dir, or none.
	KueueFeatureGates []string
	// SchedulerOnly leaves out the controllers and the nodes; false: as at the last start in Dir, or not.
	SchedulerOnly bool
	// AuditPolicy is the path of an audit policy; empty: that of the last start in Dir, or no audit log (AuditLog).
	AuditPolicy string
	// PodSecurity is one of controlplane.PodSecurityLevels; empty: as at the last start in Dir, or privileged.
	PodSecurity string
	// Progress receives the lines that a user of the command would see; nil: nobody. It is used until Close returns.
	Progress io.Writer
}

// An Option changes Options.
type Option func(*Options)

// Nodes adds nodes of the given declared CPU and memory, such as "4" and "15Gi". The nodes of the first group are
// called node-1, node-2 and so on, those of a further group node-b-1 and so on.
func Nodes(count int, cpu, memory string) Option {
	return func(o *Options) {
		name := "node"
		if len(o.Nodes) > 0 {
			name += "-" + string(rune('a'+len(o.Nodes)))
		}
		o.Nodes = append(o.Nodes, controlplane.NodeGroup{Name: name, Count: count, CPU: cpu, Memory: memory})
	}
}

// NodeGroup adds nodes of a kind, for labels and further resources.
func NodeGroup(group controlplane.NodeGroup) Option {
	return func(o *Options) { o.Nodes = append(o.Nodes, group) }
}

// Allocatable leaves only so much CPU of the nodes before it for pods.
func Allocatable(cpu string) Option {
	return func(o *Options) {
		if len(o.Nodes) == 0 {
			o.Nodes = []controlplane.NodeGroup{controlplane.DefaultNodes()}
		}
		o.Nodes[len(o.Nodes)-1].AllocatableCPU = cpu
	}
}

// Image runs the executable at path for containers of this image. The name controlplane.AnyImage with the path
// controlplane.HostImage lets any other image's command run as it is.
func Image(name, path string) Option {
	return func(o *Options) {
		if o.Images == nil {
			o.Images = map[string]string{}
		}
		o.Images[name] = path
	}
}

// Kueue runs Kueue beside the control plane, with the configuration of its release.
func Kueue() Option { return Controllers(addon.Kueue) }

// KueueConfig runs Kueue with the configuration in a file.
func KueueConfig(path string) Option {
	return func(o *Options) {
		Kueue()(o)
		o.KueueConfig = path
	}
}

// KueueFeatureGates runs Kueue with feature gates, such as "PriorityBoost=true".
func KueueFeatureGates(gates ...string) Option {
	return func(o *Options) {
		Kueue()(o)
		o.KueueFeatureGates = append(o.KueueFeatureGates, gates...)
	}
}

// Controllers runs controllers of other projects beside the control plane: names of package addon.
func Controllers(names ...string) Option {
	return func(o *Options) { o.Controllers = append(o.Controllers, names...) }
}

// SchedulerOnly leaves out everything that changes objects by itself, but for the scheduler: nodes, pods and their
// status are what the test says. When a pod's status says that others are evicted for it, they have been.
func SchedulerOnly() Option { return func(o *Options) { o.SchedulerOnly = true } }

// Mounts sets how containers see their volumes.
func Mounts(mode string) Option { return func(o *Options) { o.Mounts = mode } }

// AuditPolicy has the API server log requests as the policy in a file says.
func AuditPolicy(path string) Option { return func(o *Options) { o.AuditPolicy = path } }

// PodSecurity enforces a Pod Security Standard, such as "baseline", in every namespace without the label
// pod-security.kubernetes.io/enforce.
func PodSecurity(level string) Option { return func(o *Options) { o.PodSecurity = level } }

// Dir sets the state directory, which is kept.
func Dir(path string) Option { return func(o *Options) { o.Dir = path } }

// A Cluster is a running cluster.
type Cluster struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// UserKubeconfig is the path of the kubeconfig of controlplane.UserName, to whom no role is bound.
	UserKubeconfig string
	// Dir is the state directory; logs/ in it has the components' logs.
	Dir string

	layout     controlplane.Layout
	supervisor *supervisor
	temporary  bool
	closed     atomic.Bool
}

// AuditLog is the path of the API server's audit log, one event in JSON a line.
func (c *Cluster) AuditLog() string { return c.layout.Log("audit") }

// Start starts a cluster for a test, which ends with it. Where a cluster cannot exist the test is skipped.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	output := &transcript{}
	options := Options{Progress: output}
	for _, opt := range opts {
		opt(&options)
	}
	ctx, cancel := context.WithTimeout(t.Context(), buildPatience+patience.Long)
	defer cancel()
	cluster, err := Run(ctx, options)
	if errors.Is(err, ErrLinuxOnly) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("starting the embedded cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the embedded cluster said:\n%s", output)
		}
		if err := cluster.Close(); err != nil {
			t.Errorf("stopping the embedded cluster: %v\n%s", err, output)
		}
	})
	return cluster
}

// Main starts a cluster, sets *cluster, runs the tests of a package and stops the cluster: one control plane for a
// whole test binary, which is the usual thing to do. Its result is the exit code:
//
//	var cluster *simcluster.Cluster
//
//	func TestMain(m *testing.M) { os.Exit(simcluster.Main(m, &cluster, simcluster.Nodes(3, "4", "15Gi"))) }
func Main(m interface{ Run() int }, cluster **Cluster, opts ...Option) (code int) {
	output := &transcript{}
	options := Options{Progress: output}
	for _, opt := range opts {
		opt(&options)
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildPatience+patience.Long)
	started, err := Run(ctx, options)
	cancel()
	if errors.Is(err, ErrLinuxOnly) {
		fmt.Fprintf(os.Stderr, "SKIP: %v\n", err)
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "starting the embedded cluster: %v\n", err)
		return 1
	}
	defer func() {
		if err := started.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "stopping the embedded cluster: %v\n%s", err, output)
			code = max(code, 1)
		}
	}()
	*cluster = started
	return m.Run()
}

// Config returns a configuration with all rights and no rate limit on the client's side.
func (c *Cluster) Config() (*rest.Config, error) { return config(c.Kubeconfig) }

// UserConfig returns the configuration of controlplane.UserName.
func (c *Cluster) UserConfig() (*rest.Config, error) { return config(c.UserKubeconfig) }

// Client returns a client with all rights.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// Kueue returns a client of Kueue's kinds, with all rights. They are there when Kueue runs.
func (c *Cluster) Kueue() (*kueueclient.Client, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return kueueclient.NewForConfig(config)
}

func config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The default of five requests a second is for programs that share an API server with others.
	config.QPS = -1
	return config, nil
}

// Namespace makes a namespace for a test, in which pods can be created at once; it is deleted after the test, without
// waiting for that.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	client, err := c.Client()
	if err != nil {
		t.Fatalf("a namespace for the test: %v", err)
	}
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.Short)
		defer cancel()
		if err := client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Logf("deleting the test's namespace: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience.Medium)
	defer cancel()
	err = await.Until(ctx, "pods can be made in namespace "+namespace.Name, 10*time.Millisecond, func(ctx context.Context) error {
		// Without its default ServiceAccount no pod is admitted to a namespace; without this ConfigMap none starts.
		_, errAccount := client.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		_, errRoot := client.CoreV1().ConfigMaps(namespace.Name).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return errors.Join(errAccount, errRoot)
	})
	if err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// arguments are the options as the command line of `simcluster up`.
func (o Options) arguments(dir string) []string {
	args := []string{"up", "--foreground", "--dir=" + dir}
	if o.Port != 0 {
		args = append(args, fmt.Sprintf("--port=%d", o.Port))
	}
	for _, group := range o.Nodes {
		args = append(args, "--node-group="+group.String())
	}
	for name, path := range o.Images {
		args = append(args, "--image="+name+"="+path)
	}
	if o.Mounts != "" {
		args = append(args, "--mounts="+o.Mounts)
	}
	var others []string
	for _, name := range o.Controllers {
		if name == addon.Kueue {
			args = append(args, "--kueue")
		} else {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		args = append(args, "--controllers="+strings.Join(others, ","))
	}
	if o.KueueConfig != "" {
		args = append(args, "--kueue-config="+o.KueueConfig)
	}
	if len(o.KueueFeatureGates) > 0 {
		args = append(args, "--kueue-feature-gates="+strings.Join(o.KueueFeatureGates, ","))
	}
	if o.SchedulerOnly {
		args = append(args, "--scheduler-only")
	}
	if o.AuditPolicy != "" {
		args = append(args, "--audit-policy="+o.AuditPolicy)
	}
	if o.PodSecurity != "" {
		args = append(args, "--pod-security="+o.PodSecurity)
	}
	return args
}

// indent makes a transcript stand out in a test's log.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
