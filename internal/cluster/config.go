package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// DefaultFieldManager owns what the provider writes, unless the configuration names another.
const DefaultFieldManager = "terraform-provider-elastic"

// Config defines which cluster to talk to, as whom, and how. Explicit fields beat those of kubeconfig files; nothing is
// read from the environment and no file is read that is not named here.
type Config struct {
	Host          string // https://host:port
	TLSServerName string // the name in the server's certificate, when it is not Host's
	Insecure      bool   // do not verify the server's certificate
	CAData        []byte // PEM
	ProxyURL      string

	Token    string
	CertData []byte // PEM, with KeyData
	KeyData  []byte // PEM
	Exec     *Exec

	Kubeconfigs     []string // absolute paths, merged as kubectl merges $KUBECONFIG
	Context         string   // of the kubeconfigs; "" for their current one
	ContextCluster  string   // overrides the context's cluster
	ContextAuthInfo string   // overrides the context's user

	InCluster bool // use the pod's service account

	QPS   float32 // requests per second of this client; 0 or less for no limit of its own
	Burst int     // requests above QPS at once; of no effect without QPS

	FieldManager       string // "" for DefaultFieldManager
	ForceConflicts     bool   // overwrite what others changed after the plan; for the callers of Apply
	ExpectedClusterUID string // UID of namespace kube-system; "" to accept any cluster
	HidePodLogs        bool   // what pods have printed is not to be shown; for those who explain why one failed
	UserAgent          string
}

// Exec is a command that prints a credential, such as gke-gcloud-auth-plugin.
type Exec struct {
	APIVersion string // client.authentication.k8s.io/v1
	Command    string
	Args       []string
	Env        map[string]string
}

// ErrNoCluster means that the configuration names no cluster at all.
var ErrNoCluster = errors.New("no cluster is configured")

// dialTimeout leaves room for a second address and the TLS handshake within the limit for connecting.
const dialTimeout = 5 * time.Second

// restConfig turns a configuration into client-go's, reading the kubeconfig files it names.
func restConfig(c Config) (*rest.Config, error) {
	base, err := baseConfig(c)
	if err != nil {
		return nil, err
	}
	if err := overlay(base, c); err != nil {
		return nil, err
	}
	if base.Host == "" {
		return nil, ErrNoCluster
	}
	if err := refusePlainCredential(base); err != nil {
		return nil, err
	}
	base.QPS, base.Burst = -1, 0 // client-go's own default of 5 per second makes 1,000 objects take minutes
	if c.QPS > 0 {
		base.QPS, base.Burst = c.QPS, max(c.Burst, 1)
	}
	base.UserAgent = c.UserAgent
	base.WarningHandlerWithContext = warningHandler{}
	base.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	base.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next: next, limits: defaultLimits()} })
	return base, nil
}

// baseConfig is what kubeconfig files or the pod's service account say.
func baseConfig(c Config) (*rest.Config, error) {
	switch {
	case c.InCluster:
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("in_cluster: %w; it works only in a pod with a service account token", err)
		}
		return config, nil
	case len(c.Kubeconfigs) > 0:
		return kubeconfig(c)
	default:
		return &rest.Config{}, nil
	}
}

func kubeconfig(c Config) (*rest.Config, error) {
	files := strings.Join(c.Kubeconfigs, ", ")
	var merged *clientcmdapi.Config
	var err error
	if len(c.Kubeconfigs) == 1 {
		// An explicit path, unlike a list, is an error when it does not exist.
		merged, err = (&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfigs[0]}).Load()
	} else {
		merged, err = (&clientcmd.ClientConfigLoadingRules{Precedence: c.Kubeconfigs}).Load()
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", files, err)
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Cluster = c.ContextCluster
	overrides.Context.AuthInfo = c.ContextAuthInfo
	config, err := clientcmd.NewNonInteractiveClientConfig(*merged, c.Context, overrides, nil).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err) && c.Host != "":
		return &rest.Config{}, nil // the files may say nothing when the attributes say it all
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("kubeconfig %s: no cluster in it, and no current context", files)
	case err != nil:
		return nil, fmt.Errorf("kubeconfig %s: %w", files, err)
	}
	return config, nil
}

// overlay writes the explicit fields over what the files say. A credential replaces the file's, whatever its kind, so
// that the request is never made as somebody else.
func overlay(base *rest.Config, c Config) error {
	if c.Host != "" {
		base.Host = c.Host
	}
	if c.TLSServerName != "" {
		base.ServerName = c.TLSServerName
	}
	if c.Insecure {
		base.Insecure, base.CAData, base.CAFile = true, nil, ""
	}
	if len(c.CAData) > 0 {
		base.Insecure, base.CAData, base.CAFile = false, c.CAData, ""
	}
	if c.ProxyURL != "" {
		proxy, err := url.Parse(c.ProxyURL)
		if err != nil {
			return fmt.Errorf("proxy_url: %w", err)
		}
		base.Proxy = http.ProxyURL(proxy)
	}
	if c.Token == "" && len(c.CertData) == 0 && c.Exec == nil {
		return nil
	}
	base.BearerToken, base.BearerTokenFile = c.Token, ""
	base.Username, base.Password = "", ""
	base.CertData, base.CertFile, base.KeyData, base.KeyFile = c.CertData, "", c.KeyData, ""
	base.AuthProvider, base.ExecProvider = nil, nil
	if c.Exec != nil {
		base.ExecProvider = execProvider(c.Exec)
	}
	return nil
}

// refusePlainCredential refuses to send what proves who somebody is to where everybody on the way can read it. On this
// machine there is no way: kubectl proxy and test servers listen there.
func refusePlainCredential(base *rest.Config) error {
	server, _, err := rest.DefaultServerUrlFor(base)
	if err != nil || server.Scheme != "http" {
		return nil //nolint:nilerr // an address that cannot be read is an error of the client that is made of it
	}
	secret := base.BearerToken != "" || base.BearerTokenFile != "" || base.Password != "" || base.ExecProvider != nil || base.AuthProvider != nil
	if ip := net.ParseIP(server.Hostname()); !secret || base.Proxy == nil && (server.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("the address %s is plain http, and the credential would be sent to it unencrypted: write https://%s; "+
		"http:// with a credential is for this machine's loopback only", server.Redacted(), server.Host)
}

func execProvider(e *Exec) *clientcmdapi.ExecConfig {
	config := &clientcmdapi.ExecConfig{
		APIVersion:      e.APIVersion,
		Command:         e.Command,
		Args:            e.Args,
		InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}
	for name, value := range e.Env {
		config.Env = append(config.Env, clientcmdapi.ExecEnvVar{Name: name, Value: value})
	}
	return config
}
