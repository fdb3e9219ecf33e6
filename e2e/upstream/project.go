package upstream

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Variable is the environment variable with the folder of the programs that tools/upstream.sh builds. Tests that need
// them are skipped without it.
const Variable = "ELASTIC_UPSTREAM"

// A Project is a controller that another project publishes.
type Project string

// The projects that tools/upstream.sh builds.
const (
	Kueue   Project = "kueue"
	JobSet  Project = "jobset"
	Trainer Project = "trainer"
	KubeRay Project = "kuberay"
)

// Projects are all of them, in an order in which they can be started: Trainer needs the API of JobSet, and Kueue looks
// at the APIs of the others when it starts.
func Projects() []Project { return []Project{JobSet, Trainer, KubeRay, Kueue} }

// Built returns the projects whose program is in dir, in the order of Projects.
func Built(dir string) []Project {
	return slices.DeleteFunc(Projects(), func(p Project) bool {
		_, err := os.Stat(filepath.Join(dir, string(p)))
		return err != nil
	})
}

// namespace is where the release runs, and where Kueue looks for objects of its own.
func (p Project) namespace() string {
	switch p {
	case KubeRay:
		return "ray-system"
	case Trainer:
		return "kubeflow-system"
	default:
		return string(p) + "-system"
	}
}

// A site is where a controller's process finds its files and listens.
type site struct {
	program      string // the executable
	dir          string // of its own: configuration, certificates, log
	health       int    // the port of /readyz, on 127.0.0.1
	webhook      int    // the port of the webhooks, on 127.0.0.1
	certificates string // the folder with tls.crt and tls.key
	kubeconfig   string
	gates        []string // feature gates besides the release's, as "PriorityBoost=true"
}

// command is the command line of a controller and what its environment has besides this process's.
func (p Project) command(s site) (args, env []string, err error) {
	env = []string{"KUBECONFIG=" + s.kubeconfig, "TMPDIR=" + s.dir}
	if p == KubeRay { // has no webhooks unless requested, and takes flags instead of a file
		// The containers on an embedded cluster do not run Ray: nothing would answer the probes that are added.
		env = append(env, "ENABLE_PROBES_INJECTION=false", "ENABLE_INIT_CONTAINER_INJECTION=false")
		return []string{
			"--metrics-addr=0", fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", s.health),
			"--enable-leader-election=false",
		}, env, nil
	}
	file, err := p.configure(s)
	if err != nil {
		return nil, nil, err
	}
	args = []string{"--config=" + file}
	if p == Kueue {
		env = append(env, "KUEUE_METRICS_CERTS="+s.certificates)
		// Its aggregated API would need a Service.
		gates := append([]string{"VisibilityOnDemand=false"}, s.gates...)
		args = append(args, "--feature-gates="+strings.Join(gates, ","), "--zap-log-level=2")
	}
	return args, env, nil
}

// configure writes the configuration of the release, with the addresses and certificates of s, and returns its path.
func (p Project) configure(s site) (string, error) {
	text, err := os.ReadFile(s.program + "-configuration.yaml")
	if err != nil {
		return "", err
	}
	configuration := map[string]any{}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		return "", fmt.Errorf("the configuration of %s: %w", p, err)
	}
	configuration["leaderElection"] = map[string]any{"leaderElect": false}
	configuration["health"] = map[string]any{"healthProbeBindAddress": fmt.Sprintf("127.0.0.1:%d", s.health)}
	configuration["metrics"] = map[string]any{"bindAddress": "0"}
	webhook := map[string]any{"port": s.webhook, "host": "127.0.0.1"}
	if p != Trainer { // which has no such field, and looks below the folder for temporary files
		webhook["certDir"] = s.certificates
	}
	configuration["webhook"] = webhook
	management := "internalCertManagement"
	if p == Trainer {
		management = "certManagement"
	}
	configuration[management] = map[string]any{"enable": false}
	if text, err = yaml.Marshal(configuration); err != nil {
		return "", err
	}
	file := filepath.Join(s.dir, "configuration.yaml")
	return file, os.WriteFile(file, text, 0o600)
}
