package fakekubelet

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// firstUnprivilegedPort is the lowest port that every user may listen on. Lower ones are
// not forwarded, not even for root, so that a cluster behaves the same for everybody.
const firstUnprivilegedPort = 1024

// dialTimeout is ample on one machine; a pod that does not answer is a pod whose
// process is stopped.
const dialTimeout = 5 * time.Second

// A serviceProxy stands in for kube-proxy: it listens on services' cluster IPs and
// forwards each connection to one of the ready pods that the service selects then.
// (EndpointSlices cannot say which: they refuse loopback addresses.)
type serviceProxy struct {
	log    *slog.Logger
	pods   listers.PodLister
	events record.EventRecorder
	ctx    context.Context // ends connections at close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	services  map[string]*corev1.Service // by namespace/name
	listeners map[string]*serviceListener
}

type serviceListener struct {
	net.Listener
	service string // namespace/name
	port    int32
}

func newServiceProxy(log *slog.Logger, pods listers.PodLister, events record.EventRecorder) *serviceProxy {
	ctx, cancel := context.WithCancel(context.Background())
	return &serviceProxy{
		log: log, pods: pods, events: events, ctx: ctx, cancel: cancel,
		services: map[string]*corev1.Service{}, listeners: map[string]*serviceListener{},
	}
}

func (p *serviceProxy) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.changed(o.(*corev1.Service)) },
		UpdateFunc: func(_, o any) { p.changed(o.(*corev1.Service)) },
		DeleteFunc: func(o any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
				p.set(key, nil, nil)
			}
		},
	}
}

// changed takes a service's newest version.
func (p *serviceProxy) changed(service *corev1.Service) {
	p.set(service.Namespace+"/"+service.Name, service, forwardedPorts(service))
}

// forwardedPorts are the ports of a service that can be forwarded, by the address
// to listen on.
func forwardedPorts(service *corev1.Service) map[string]corev1.ServicePort {
	ip := service.Spec.ClusterIP
	if ip == "" || ip == corev1.ClusterIPNone || service.Spec.Type == corev1.ServiceTypeExternalName || len(service.Spec.Selector) == 0 {
		return nil
	}
	ports := map[string]corev1.ServicePort{}
	for _, port := range service.Spec.Ports {
		if port.Port >= firstUnprivilegedPort && (port.Protocol == corev1.ProtocolTCP || port.Protocol == "") {
			ports[net.JoinHostPort(ip, strconv.Itoa(int(port.Port)))] = port
		}
	}
	return ports
}

// set makes the listeners of a service those of ports; service is nil when it is gone.
func (p *serviceProxy) set(key string, service *corev1.Service, ports map[string]corev1.ServicePort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return
	}
	before := p.services[key]
	p.services[key] = service
	if service == nil {
		delete(p.services, key)
	}
	for address, listener := range p.listeners {
		if _, ok := ports[address]; listener.service == key && !ok {
			_ = listener.Close()
			delete(p.listeners, address)
		}
	}
	for address, port := range ports {
		if _, ok := p.listeners[address]; ok {
			continue
		}
		listener, err := net.Listen("tcp4", address)
		if err != nil {
			p.events.Eventf(service, corev1.EventTypeWarning, "FailedToListen", "Connections to %s are not forwarded: %v", address, err)
			p.log.Warn("service cannot be forwarded", "service", key, "error", err)
			continue
		}
		l := &serviceListener{listener, key, port.Port}
		p.listeners[address] = l
		p.work.Go(func() { p.accept(l) })
	}
	if service != nil && before == nil {
		p.warnPrivileged(service)
	}
}

func (p *serviceProxy) warnPrivileged(service *corev1.Service) {
	for _, port := range service.Spec.Ports {
		if port.Port < firstUnprivilegedPort && len(service.Spec.Selector) > 0 && service.Spec.ClusterIP != corev1.ClusterIPNone {
			p.events.Eventf(service, corev1.EventTypeWarning, "PortNotForwarded",
				"Port %d is not forwarded by simulated nodes, which need no root: use one from %d on", port.Port, firstUnprivilegedPort)
		}
	}
}

func (p *serviceProxy) accept(l *serviceListener) {
	for {
		connection, err := l.Accept()
		if err != nil {
			return // closed
		}
		p.work.Go(func() { p.forward(l, connection.(*net.TCPConn)) })
	}
}

func (p *serviceProxy) forward(l *serviceListener, client *net.TCPConn) {
	defer client.Close()
	backend, err := p.backend(l.service, l.port)
	if err != nil {
		reset(client) // what a client sees of a service without endpoints
		return
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	connection, err := dialer.DialContext(p.ctx, "tcp4", backend)
	if err != nil {
		reset(client)
		return
	}
	pod := connection.(*net.TCPConn)
	defer pod.Close()
	stop := context.AfterFunc(p.ctx, func() { reset(client); reset(pod) })
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { pipe(client, pod) })
	pipe(pod, client)
	both.Wait()
}

// pipe copies until from has no more, which it passes on as such, or until one of
// the two breaks, which breaks the other.
func pipe(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.CloseWrite()
}

// reset ends a connection in the way that its peer sees as an error.
func reset(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}

// backend picks one of the ready pods of a service.
func (p *serviceProxy) backend(key string, number int32) (string, error) {
	p.mu.Lock()
	service := p.services[key]
	p.mu.Unlock()
	if service == nil {
		return "", fmt.Errorf("service %s is gone", key)
	}
	pods, err := p.pods.Pods(service.Namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return "", fmt.Errorf("pods of service %s: %w", key, err)
	}
	var candidates []string
	for _, pod := range pods {
		if address, ok := endpoint(service, number, pod); ok {
			candidates = append(candidates, address)
		}
	}
	if len(candidates) == 0 {
		return "", fmt.Errorf("service %s has no ready pods", key)
	}
	return candidates[rand.IntN(len(candidates))], nil
}

// endpoint is where a pod serves a service's port; ok is false if it does not, or is
// not ready.
func endpoint(service *corev1.Service, number int32, pod *corev1.Pod) (address string, ok bool) {
	if pod.Status.PodIP == "" || finished(pod) || pod.DeletionTimestamp != nil && !service.Spec.PublishNotReadyAddresses {
		return "", false
	}
	if !service.Spec.PublishNotReadyAddresses && !podReady(pod) {
		return "", false
	}
	for _, port := range service.Spec.Ports {
		if port.Port != number {
			continue
		}
		target, ok := targetPort(port, pod)
		return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(target))), ok
	}
	return "", false
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func targetPort(port corev1.ServicePort, pod *corev1.Pod) (int32, bool) {
	if port.TargetPort.Type == intstr.Int {
		if port.TargetPort.IntVal == 0 {
			return port.Port, true
		}
		return port.TargetPort.IntVal, true
	}
	for i := range pod.Spec.Containers {
		for _, containerPort := range pod.Spec.Containers[i].Ports {
			if containerPort.Name == port.TargetPort.StrVal {
				return containerPort.ContainerPort, true
			}
		}
	}
	return 0, false
}

// close ends all listeners and connections.
func (p *serviceProxy) close() {
	p.mu.Lock()
	p.cancel()
	for _, listener := range p.listeners {
		_ = listener.Close()
	}
	p.mu.Unlock()
	p.work.Wait()
}
