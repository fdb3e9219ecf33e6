// Package addon knows the controllers of other projects that can run beside an embedded control plane: Kueue, JobSet,
// LeaderWorkerSet, Kubeflow Trainer and KubeRay. Each is the project's own program with the project's own manifests, as tools/controllers.sh builds
// them from the versions of module simcluster/controllers.
//
// What differs from an installation by kubectl: the program is a process of this machine and no Deployment, so its
// webhooks are reached by URL on loopback, with a certificate of the cluster's authority, and there are no Services,
// and therefore no aggregated API (Kueue's visibility API).
package addon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// An Addon is a controller of another project.
type Addon struct {
	// Name is that of the component, its log, and its folder among the built ones.
	Name string
	// Namespace and ServiceAccount are where its manifests put it, and who it is.
	Namespace, ServiceAccount string
	// configMap is where its manifests have its configuration; "": it takes flags instead.
	configMap string
	// configure changes its configuration for a process on this machine.
	configure func(config map[string]any, endpoint Endpoint)
	// flags are those of an add-on without a configuration.
	flags func(Endpoint) []string
	// environment is what it needs besides a kubeconfig.
	environment []string
}

// configKey is the key of the configuration in every project's ConfigMap.
const configKey = "controller_manager_config.yaml"

// An Endpoint is where an add-on listens on 127.0.0.1.
type Endpoint struct {
	WebhookPort, HealthPort int
	// CertificateDir has the webhooks' tls.crt and tls.key.
	CertificateDir string
}

// The add-ons.
const (
	Kueue   = "kueue"
	JobSet  = "jobset"
	LWS     = "lws"
	Trainer = "trainer"
	KubeRay = "kuberay"
)

// certificateVariable names the directory of the certificate of Kueue's metrics; tools/controllers.sh makes Kueue read it.
const certificateVariable = "KUEUE_METRICS_CERTIFICATES"

// All are the add-ons, in the order in which they are started: Trainer needs JobSet's kinds, and Kueue looks for the kinds
// of the others when it starts.
func All() []Addon {
	return []Addon{
		{
			Name: JobSet, Namespace: "jobset-system", ServiceAccount: "jobset-controller-manager",
			configMap: "jobset-manager-config", configure: configure,
		},
		{
			Name: LWS, Namespace: "lws-system", ServiceAccount: "lws-controller-manager",
			configMap: "lws-manager-config", configure: configure,
		},
		{
			Name: Trainer, Namespace: "kubeflow-system", ServiceAccount: "kubeflow-trainer-controller-manager",
			configMap: "kubeflow-trainer-config", configure: configureTrainer,
		},
		{
			Name: KubeRay, Namespace: "default", ServiceAccount: "kuberay-operator", flags: kubeRayFlags,
			// The containers on an embedded cluster do not run Ray: nothing would answer the probes that are added.
			environment: []string{"ENABLE_PROBES_INJECTION=false", "ENABLE_INIT_CONTAINER_INJECTION=false"},
		},
		{
			Name: Kueue, Namespace: "kueue-system", ServiceAccount: "kueue-controller-manager",
			configMap: "kueue-manager-config", configure: configureKueue,
		},
	}
}

// Names are the names of all add-ons.
func Names() []string {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name)
	}
	return names
}

// ByName finds an add-on.
func ByName(name string) (Addon, error) {
	for _, a := range All() {
		if a.Name == name {
			return a, nil
		}
	}
	return Addon{}, fmt.Errorf("there is no controller %q; there are %s", name, strings.Join(Names(), ", "))
}

// Built are the names of the add-ons that are built in a folder.
func Built(dir string) []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name, "manager"))
		return err != nil
	})
}

// User is who the add-on is for the API server: its ServiceAccount.
func (a Addon) User() (name string, groups []string) {
	const accounts = "system:serviceaccounts"
	return "system:serviceaccount:" + a.Namespace + ":" + a.ServiceAccount, []string{accounts, accounts + ":" + a.Namespace}
}

// Command is how the add-on's program is run: its arguments, and what its environment has besides the supervisor's. config
// is the path of its configuration, dir its folder for temporary files.
func (a Addon) Command(config, dir, kubeconfig string, endpoint Endpoint) (arguments, environment []string) {
	arguments = []string{"--config=" + config}
	if a.configMap == "" {
		arguments = a.flags(endpoint)
	}
	return arguments, append([]string{
		"KUBECONFIG=" + kubeconfig,
		"POD_NAMESPACE=" + a.Namespace,
		// Where a configuration cannot say where the certificates are, they are below the folder for temporary files.
		"TMPDIR=" + dir,
		certificateVariable + "=" + endpoint.CertificateDir,
	}, a.environment...)
}

// DirVariable names the folder of the built add-ons, where it is not folder "controllers" beside the simcluster program.
const DirVariable = "SIMCLUSTER_CONTROLLERS"

// Find returns the folder of the add-ons that are built.
func Find(executable string) string {
	if dir := os.Getenv(DirVariable); dir != "" {
		return dir
	}
	return filepath.Join(filepath.Dir(executable), "controllers")
}

// Program is the add-on's program in the folder of the built ones. The error of one that is not built says how to.
func (a Addon) Program(dir string) (string, error) {
	program := filepath.Join(dir, a.Name, "manager")
	switch _, err := os.Stat(program); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s is not built: there is no %s; run `make controllers` in a checkout of simcluster, "+
			"and set $%s to its bin/controllers if this is another simcluster", a.Name, program, DirVariable)
	case err != nil:
		return "", fmt.Errorf("the program of %s: %w", a.Name, err)
	}
	return program, nil
}

// Settings are what a user says about an add-on's configuration.
type Settings struct {
	// Config takes the place of the release's configuration; nil: it stays.
	Config map[string]any
	// Gates are feature gates besides those of the configuration.
	Gates map[string]bool
}

// ReadSettings reads a file with a configuration, unless its path is empty, and feature gates such as "PriorityBoost=true".
func ReadSettings(path string, gates []string) (Settings, error) {
	settings := Settings{Gates: map[string]bool{}}
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return Settings{}, fmt.Errorf("configuration: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &settings.Config); err != nil {
			return Settings{}, fmt.Errorf("configuration %q: %w", path, err)
		}
		if kind := settings.Config["kind"]; kind != "Configuration" {
			return Settings{}, fmt.Errorf("configuration %q: its kind is %v, not Configuration; "+
				"it is the file that Kueue's ConfigMap kueue-manager-config has as %s", path, kind, configKey)
		}
	}
	for _, gate := range gates {
		name, text, _ := strings.Cut(gate, "=")
		value, err := strconv.ParseBool(text)
		if err != nil || name == "" {
			return Settings{}, fmt.Errorf("feature gate %q: it must be NAME=true or NAME=false", gate)
		}
		settings.Gates[name] = value
	}
	if settings.Gates[visibility] || section(settings.Config, "featureGates")[visibility] == true {
		return Settings{}, fmt.Errorf("feature gate %s: the aggregated API needs a Service, "+
			"and Kueue runs outside the cluster here", visibility)
	}
	return settings, nil
}

// visibility is the gate of Kueue's aggregated API.
const visibility = "VisibilityOnDemand"

func configureKueue(config map[string]any, endpoint Endpoint) {
	metrics := section(config, "metrics")["bindAddress"]
	configure(config, endpoint)
	set(config, false, "featureGates", visibility)
	// Nobody scrapes it, unless the user's own configuration says where.
	if metrics != nil && metrics != ":8443" {
		set(config, metrics, "metrics", "bindAddress")
	}
}

func configureTrainer(config map[string]any, endpoint Endpoint) {
	configure(config, endpoint)
	// It has names of its own for this, and looks for its certificates below the folder for temporary files.
	delete(config, "internalCertManagement")
	set(config, false, "certManagement", "enable")
	delete(section(config, "webhook"), "certDir")
}

// configure says what the configurations of most projects have in common, which is controller-runtime's.
func configure(config map[string]any, endpoint Endpoint) {
	set(config, false, "leaderElection", "leaderElect")
	set(config, false, "internalCertManagement", "enable")
	set(config, loopback(endpoint.HealthPort), "health", "healthProbeBindAddress")
	set(config, "0", "metrics", "bindAddress")
	set(config, "127.0.0.1", "webhook", "host")
	set(config, endpoint.WebhookPort, "webhook", "port")
	set(config, endpoint.CertificateDir, "webhook", "certDir")
}

func kubeRayFlags(endpoint Endpoint) []string {
	return []string{
		"--enable-leader-election=false", "--metrics-addr=0",
		"--health-probe-bind-address=" + loopback(endpoint.HealthPort),
	}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// set sets a field in a section, which it makes if need be.
func set(config map[string]any, value any, name, field string) {
	values := section(config, name)
	values[field] = value
	config[name] = values
}

func section(config map[string]any, name string) map[string]any {
	if values, ok := config[name].(map[string]any); ok {
		return values
	}
	return map[string]any{}
}
