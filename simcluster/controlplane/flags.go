package controlplane

import "strconv"

const (
	// Services get addresses that this machine has: all of 127.0.0.0/8 is bound to loopback on Linux, so a forwarder
	// can listen on a Service's cluster IP without root. Pods get theirs from elsewhere in 127.0.0.0/8 (package
	// fakekubelet).
	serviceClusterIPRange = "127.96.0.0/16"
	// apiServerServiceIP is the address of the Service "kubernetes": the first of the range.
	apiServerServiceIP = "127.96.0.1"
)

// Ports are the TCP ports on 127.0.0.1 at which a cluster listens.
type Ports struct {
	APIServer int `json:"apiServer"`
	// Scheduler serves kube-scheduler's metrics and health.
	Scheduler int `json:"scheduler"`
	// Kubelet serves the logs of all nodes' pods.
	Kubelet int `json:"kubelet"`
	// Addons are the ports of add-ons, by their names.
	Addons map[string]AddonPorts `json:"addons,omitempty"`
}

// AddonPorts are the ports of an add-on.
type AddonPorts struct {
	Webhook int `json:"webhook"`
	Health  int `json:"health"`
}

// arguments returns the command line of the named component, without the component's name itself.
func arguments(component string, layout Layout, config Config, ports Ports) []string {
	switch component {
	case Etcd:
		return []string{
			"--data-dir=" + layout.EtcdData(),
			"--client-socket=" + layout.EtcdSocket(),
			"--peer-socket=" + layout.EtcdPeerSocket(),
		}
	case APIServer:
		args := apiServerArguments(layout, ports)
		if config.SchedulerOnly {
			// The controllers are absent that make a ServiceAccount for every namespace, and that take a new node's taint away.
			args = append(args, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
		}
		if config.PodSecurity != "" {
			args = append(args, "--admission-control-config-file="+layout.admissionConfigFile())
		}
		if config.AuditPolicy != "" {
			args = append(args, "--audit-policy-file="+config.AuditPolicy, "--audit-log-path="+layout.Log("audit"),
				"--audit-log-maxsize=100", "--audit-log-maxbackup=1") // in MB: it fills no disk
		}
		return args
	case ControllerManager:
		return controllerManagerArguments(layout)
	case Scheduler:
		args := schedulerArguments(layout, ports)
		if config.SchedulerOnly {
			// A pod's status then says that others are evicted for it when they have been, and not before.
			args = append(args, "--feature-gates=SchedulerAsyncPreemption=false")
		}
		return args
	case NodeAgent:
		return []string{"--config=" + layout.agentConfigFile()}
	}
	panic("controlplane: no such component: " + component)
}

func apiServerArguments(layout Layout, ports Ports) []string {
	return []string{
		"--etcd-servers=unix://" + layout.EtcdSocket(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports.APIServer),
		"--service-cluster-ip-range=" + serviceClusterIPRange,
		// Validation refuses loopback addresses in Endpoints; the reconciler would retry for ever.
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + layout.pki("apiserver.crt"),
		"--tls-private-key-file=" + layout.pki("apiserver.key"),
		"--client-ca-file=" + layout.pki("ca.crt"),
		"--kubelet-certificate-authority=" + layout.pki("ca.crt"),
		"--kubelet-client-certificate=" + layout.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + layout.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		// Aggregation; without it the scheduler complains every few seconds that it cannot learn whom to trust.
		"--requestheader-client-ca-file=" + layout.pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + layout.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + layout.pki("front-proxy-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + layout.pki("sa.pub"),
		"--service-account-signing-key-file=" + layout.pki("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--profiling=false",
		// Nobody balances load over API servers here that would have to notice that this one goes away.
		"--shutdown-delay-duration=0s",
	}
}

func controllerManagerArguments(layout Layout) []string {
	return []string{
		"--kubeconfig=" + layout.Kubeconfig("controller-manager"),
		"--bind-address=127.0.0.1",
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		// Every controller looks up and creates a ServiceAccount of its own before any of them starts. At the default
		// rate of 20 requests a second that alone takes five seconds of a new cluster's start.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		// Pods have loopback addresses, which validation refuses in Endpoints and EndpointSlices: these three would
		// retry for ever. The node agent resolves Services by their selectors.
		"--controllers=*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller",
		"--service-cluster-ip-range=" + serviceClusterIPRange,
		"--allocate-node-cidrs=false",
		"--service-account-private-key-file=" + layout.pki("sa.key"),
		"--root-ca-file=" + layout.pki("ca.crt"),
		"--cluster-signing-cert-file=" + layout.pki("ca.crt"),
		"--cluster-signing-key-file=" + layout.pki("ca.key"),
		// The default is /usr/libexec/kubernetes, which would be created.
		"--flex-volume-plugin-dir=" + layout.Dir + "/flexvolume",
		"--profiling=false",
	}
}

func schedulerArguments(layout Layout, ports Ports) []string {
	kubeconfig := layout.Kubeconfig("scheduler")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports.Scheduler),
		"--tls-cert-file=" + layout.pki("scheduler-serving.crt"),
		"--tls-private-key-file=" + layout.pki("scheduler-serving.key"),
		"--leader-elect=false",
		// The default of 50 requests a second is for clusters that share an API server with others.
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--profiling=false",
	}
}
