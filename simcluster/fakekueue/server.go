package fakekueue

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/admission"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/fakekueue/workload"
)

const (
	// closePatience bounds the end of requests that are under way.
	closePatience = 2 * time.Second
	// headerPatience is more than an API server on the same machine takes to ask.
	headerPatience = 10 * time.Second
)

// A server serves the webhooks, and reports whether it can.
type server struct {
	http     *http.Server
	listener net.Listener
	ready    atomic.Bool
}

// newServer listens already, so that a port that is taken is known at once.
func newServer(config Config, c *controller) (*server, error) {
	certificate, err := tls.LoadX509KeyPair(config.CertFile, config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("the webhooks' certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(config.WebhookPort)))
	if err != nil {
		return nil, fmt.Errorf("the webhooks' port: %w", err)
	}
	s := &server{listener: listener}
	mux := http.NewServeMux()
	mux.Handle("/", admission.Handler(admission.Cluster{DefaultQueue: c.hasDefaultQueue, Owner: c.readOwner}))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready: the API is being installed, or what is there is being read", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	s.http = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerPatience,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
	}
	return s, nil
}

// serve serves until ctx ends.
func (s *server) serve(ctx context.Context) error {
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		closed <- s.http.Shutdown(ctx)
	})
	err := s.http.ServeTLS(s.listener, "", "")
	if stop() {
		return fmt.Errorf("serving the webhooks: %w", err)
	}
	if err := <-closed; err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing the webhooks: %w", err)
	}
	return nil
}

// hasDefaultQueue reports whether a namespace has a LocalQueue "default".
func (c *controller) hasDefaultQueue(namespace string) bool {
	_, ok := c.localQueues.get(types.NamespacedName{Namespace: namespace, Name: string(kueue.DefaultLocalQueueName)})
	return ok && c.managed(namespace)
}

// readOwner reads a Job or pod that controls another object, from the API server where the stores do not have it (yet).
func (c *controller) readOwner(ctx context.Context, namespace string, owner *metav1.OwnerReference) (metav1.Object, error) {
	name := types.NamespacedName{Namespace: namespace, Name: owner.Name}
	if owner.Kind == workload.JobKind.Kind {
		if job, ok := c.jobs.get(name); ok && job.UID == owner.UID {
			return job, nil
		}
		return c.core.BatchV1().Jobs(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	}
	if pod, ok := c.pods.get(name); ok && pod.UID == owner.UID {
		return pod, nil
	}
	if owner.Kind == workload.PodKind.Kind {
		return c.core.CoreV1().Pods(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	}
	return nil, apierrors.NewNotFound(kueue.Resource(owner.Kind), owner.Name)
}
