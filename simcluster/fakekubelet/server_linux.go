package fakekubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/flushwriter"
	"k8s.io/cri-client/pkg/logs"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	core "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/v1/validation"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/utils/ptr"
)

// A kubeletServer is the part of a kubelet's API that `kubectl logs` needs. It serves all
// nodes, since a path names its pod.
type kubeletServer struct {
	agent    *agent
	listener net.Listener
}

// newKubeletServer listens on 127.0.0.1. Clients must show a certificate of the
// cluster's authority, as the API server does; authorized says which of them may ask.
func newKubeletServer(a *agent) (*kubeletServer, error) {
	file := func(name string) string { return filepath.Join(a.config.PKIDir, name) }
	certificate, err := tls.LoadX509KeyPair(file("kubelet.crt"), file("kubelet.key"))
	if err != nil {
		return nil, fmt.Errorf("node agent: serving certificate: %w", err)
	}
	authority, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("node agent: clients' certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("node agent: %s holds no certificate", file("ca.crt"))
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(hostIP, strconv.Itoa(a.config.KubeletPort)))
	if err != nil {
		return nil, fmt.Errorf("node agent: kubelet port: %w", err)
	}
	return &kubeletServer{agent: a, listener: tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	})}, nil
}

func (s *kubeletServer) serve(ctx context.Context) error {
	return serveHTTP(ctx, s.listener, authorized(s.handler()))
}

// mastersGroup is that of the API server's client certificate and of the administrator's. A kubelet would ask the API
// server whether the client may use nodes/proxy, which nobody else of an embedded cluster may.
const mastersGroup = "system:masters"

// authorized refuses everybody whom the API server would not let read any pod's log. Every user has a certificate of
// the same authority: that it is valid says who somebody is, and not what they may do.
func authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			http.Error(w, "no client certificate", http.StatusUnauthorized)
			return
		}
		subject := r.TLS.PeerCertificates[0].Subject
		if !slices.Contains(subject.Organization, mastersGroup) {
			http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=get, resource=nodes, subresource=proxy): ask the API server instead, as kubectl logs does", subject.CommonName), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *kubeletServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.containerLogs)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	for _, what := range []string{"exec", "attach", "run"} {
		mux.HandleFunc("/"+what+"/", func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, "simulated nodes do not serve "+what+": a container is a process of the machine the cluster runs on, where you can look at it directly")
		})
	}
	mux.HandleFunc("/portForward/{namespace}/{pod}/{rest...}", s.portForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.portForward)
	return mux
}

// portForward names what makes it needless: the pod's own address.
func (s *kubeletServer) portForward(w http.ResponseWriter, r *http.Request) {
	address := "POD-IP"
	if pod, err := s.agent.pods.Pods(r.PathValue("namespace")).Get(r.PathValue("pod")); err == nil && pod.Status.PodIP != "" {
		address = pod.Status.PodIP
	}
	refuse(w, "simulated nodes do not serve port-forward: the pod's own address can be reached from the machine the cluster runs on, open http://"+address+":PORT")
}

// refuse answers with an API object. Clients of an upgrade take a line of text with a colon for YAML, and such an
// object's missing message for the reason.
func refuse(w http.ResponseWriter, message string) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: message, Code: http.StatusNotImplemented,
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotImplemented)
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: requestTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("node agent: serve %s: %w", listener.Addr(), err)
}

func (s *kubeletServer) containerLogs(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("tailLines") == "all" {
		query.Del("tailLines")
	}
	var asked corev1.PodLogOptions
	if err := core.Convert_url_Values_To_v1_PodLogOptions(&query, &asked, nil); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if problems := validation.ValidatePodLogOptions(&asked); len(problems) > 0 {
		http.Error(w, problems.ToAggregate().Error(), http.StatusBadRequest)
		return
	}
	pod, err := s.agent.pods.Pods(r.PathValue("namespace")).Get(r.PathValue("pod"))
	if err != nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	path, log, err := s.findLog(pod, r.PathValue("container"), asked.Previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	options := &logs.LogOptions{TailLines: asked.TailLines, LimitBytes: asked.LimitBytes, Follow: asked.Follow, Timestamp: asked.Timestamps}
	if asked.SinceSeconds != nil {
		options.Since = time.Now().Add(-time.Duration(*asked.SinceSeconds) * time.Second)
	}
	if asked.SinceTime != nil {
		options.Since = asked.SinceTime.Time
	}
	stdout := flushwriter.Wrap(w)
	stderr := stdout
	switch ptr.Deref(asked.Stream, corev1.LogStreamAll) {
	case corev1.LogStreamStdout:
		stderr = nil
	case corev1.LogStreamStderr:
		stdout = nil
	}
	w.Header().Set("Content-Type", "text/plain")
	if asked.Follow { // what there is of it may be nothing for now
		_ = http.NewResponseController(w).Flush()
	}
	if err := readLog(r.Context(), path, log, options, stdout, stderr); err != nil && r.Context().Err() == nil {
		// Before the first byte it is an answer; after that, the end of the connection.
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// findLog finds the log of a container's run. The errors are a kubelet's.
func (s *kubeletServer) findLog(pod *corev1.Pod, container string, previous bool) (path string, log *containerLog, err error) {
	if kubecontainer.GetContainerSpec(pod, container) == nil {
		return "", nil, fmt.Errorf("container %q in pod %q is not known", container, pod.Name)
	}
	statuses := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	status, _ := podutil.GetContainerStatus(statuses, container)
	attempt := status.RestartCount
	if o := s.agent.ownerOf(pod.UID); o != nil {
		if run, ok := o.currentRun(container); ok {
			attempt, log = run.attempt, run.log
		}
	}
	if previous {
		attempt, log = attempt-1, nil
		if attempt < 0 {
			return "", nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
		}
	}
	path = logFile(s.agent.logsDir, pod.Namespace, pod.Name, pod.UID, container, attempt)
	if _, err := os.Stat(path); err != nil {
		reason := reasonContainerCreating
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" {
			reason = waiting.Reason
		}
		return "", nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, reason)
	}
	return path, log, nil
}
