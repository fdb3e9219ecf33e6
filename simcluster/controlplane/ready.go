package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/await"
)

// pollPause is the time between two looks at something that is awaited: short against a start of seconds.
const pollPause = 50 * time.Millisecond

// A condition is something that a cluster which is ready fulfils.
type condition struct {
	what  string // as in "waiting until …"
	holds func(ctx context.Context) error
}

func (c condition) await(ctx context.Context) error {
	return await.Until(ctx, c.what, pollPause, c.holds)
}

func etcdListens(layout Layout) condition {
	return condition{"etcd listens", func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "unix", layout.EtcdSocket())
		if err != nil {
			return err
		}
		return connection.Close()
	}}
}

// clusterConditions are what distinguishes a cluster that can be used from one that merely answers. The first needs the API
// server alone.
func clusterConditions(client kubernetes.Interface, config Config, nodes []string) []condition {
	beginnings := condition{"the namespace default and the system's priority classes exist", func(ctx context.Context) error {
		_, errNamespace := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		_, errClass := client.SchedulingV1().PriorityClasses().Get(ctx, "system-node-critical", metav1.GetOptions{})
		return errors.Join(errNamespace, errClass)
	}}
	if config.SchedulerOnly {
		return []condition{beginnings}
	}
	return []condition{
		beginnings,
		{"the namespace default has its ServiceAccount", func(ctx context.Context) error {
			// kube-controller-manager makes it; without it no pod is admitted.
			_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
			return err
		}},
		{"all nodes are ready", func(ctx context.Context) error {
			list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			return nodesReady(list.Items, nodes)
		}},
	}
}

// nodesReady reports, as an error, those of the wanted nodes that would not take a pod.
func nodesReady(have []corev1.Node, wanted []string) error {
	var missing []string
	for _, name := range wanted {
		i := slices.IndexFunc(have, func(node corev1.Node) bool { return node.Name == name })
		if i < 0 || !nodeReady(have[i]) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not ready: %s", strings.Join(missing, ", "))
	}
	return nil
}

func nodeReady(node corev1.Node) bool {
	tainted := slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
	})
	return !tainted && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// answersReady asks a server of the cluster for its own opinion, at /readyz.
func answersReady(client *http.Client, what, url string) condition {
	return condition{what + " says that it is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close() //nolint:errcheck // The status has been read.
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", request.URL, response.Status)
		}
		return nil
	}}
}

// serversReady asks the servers besides the API server.
func serversReady(client *http.Client, config Config, ports Ports) []condition {
	conditions := []condition{answersReady(client, Scheduler, serverURL(ports.Scheduler))}
	for _, name := range config.Addons {
		conditions = append(conditions, answersReady(client, name, fmt.Sprintf("http://127.0.0.1:%d", ports.Addons[name].Health)))
	}
	return conditions
}

// probeClient trusts the cluster's authority and, like a kubelet's probe, has no identity: health is public. It keeps
// no connection, so that a request to a server that was killed uses no dead one.
func probeClient(layout Layout) (*http.Client, error) {
	authority, err := os.ReadFile(layout.pki(clusterCA + ".crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			TLSClientConfig:   &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		},
	}, nil
}

// adminClient returns a client with all rights and no rate limit of its own.
func adminClient(layout Layout) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", layout.AdminKubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}
