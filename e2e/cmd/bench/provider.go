package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/crd"
	"github.com/elastic-training/terraform-provider-elastic/simcluster"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// The two configurations: objects of eight kinds, and as many terraform_data that refer to one another in the same way,
// which is what Terraform itself costs.
var (
	//go:embed provider_objects.tf
	objectsConfiguration []byte
	//go:embed provider_floor.tf
	baselineConfiguration []byte
)

const (
	// objectCount is how many resources each configuration has.
	objectCount = 1000
	// providerRounds bounds the rounds, of which each takes some minutes on two cores.
	providerRounds = 2
)

// measureProvider applies, plans and destroys both configurations in turn and compares them. The API server runs on the
// same cores; its time is stated apart.
func measureProvider(ctx context.Context, o options) ([]figure, error) {
	terraform, err := exec.LookPath("terraform")
	if err != nil {
		return nil, errSkipped{"terraform is not on PATH"}
	}
	cluster, err := simcluster.Run(ctx, simcluster.Options{Binary: filepath.Join(o.root, "bin", "simcluster")})
	if err != nil {
		return nil, err
	}
	defer cluster.Close() //nolint:errcheck // nothing is to be kept of it
	config, err := cluster.Config()
	if err != nil {
		return nil, err
	}
	// The API of Kueue and nobody behind it: what is measured is Terraform, the provider and the API server.
	definitions, err := crd.Objects()
	if err != nil {
		return nil, err
	}
	installing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := addon.Install(installing, config, config, definitions); err != nil {
		return nil, err
	}
	server, err := newServer(cluster, config)
	if err != nil {
		return nil, err
	}
	applies, plans := pairs{what: "apply"}, pairs{what: "plan"}
	var requests float64
	for range min(o.rounds, providerRounds) {
		baseline, err := timeTerraform(ctx, o, terraform, baselineConfiguration, cluster.Kubeconfig, nil)
		if err != nil {
			return nil, err
		}
		ours, err := timeTerraform(ctx, o, terraform, objectsConfiguration, cluster.Kubeconfig, server)
		if err != nil {
			return nil, err
		}
		applies.add(ours.apply, baseline.apply)
		plans.add(ours.plan, baseline.plan)
		requests = ours.planGets
	}
	return []figure{
		applies.figure(),
		plans.figure(),
		{
			Name: "GET requests per refreshed object", Samples: []float64{requests / objectCount}, Median: requests / objectCount,
			Least: requests / objectCount, Most: requests / objectCount, Goal: "≤ 1", Detail: fmt.Sprintf("%.0f requests for %d objects", requests, objectCount),
		},
	}, nil
}

// cost is what one run of terraform took.
type cost struct {
	wall, terraform, server time.Duration // the latter two of processor time: terraform with its plugins, and the API server
}

// pairs are costs of ours beside the baseline's, one pair a round.
type pairs struct {
	what                         string
	ratios                       []float64
	ours, baseline, cpu, serving []float64
}

func (p *pairs) add(ours, baseline cost) {
	p.ratios = append(p.ratios, ours.wall.Seconds()/baseline.wall.Seconds())
	p.ours = append(p.ours, ours.wall.Seconds())
	p.baseline = append(p.baseline, baseline.wall.Seconds())
	p.cpu = append(p.cpu, ours.terraform.Seconds()/baseline.terraform.Seconds())
	p.serving = append(p.serving, ours.server.Seconds())
}

func (p *pairs) figure() figure {
	return ratios(fmt.Sprintf("%s of %d objects", p.what, objectCount), "≤ 1.1 on four cores, ≤ 1.25 on two",
		fmt.Sprintf("terraform_data × %d: %.1f s to %.1f s; processor time %.2f times its own, and %.1f s of the API server's",
			objectCount, medianOf(p.ours), medianOf(p.baseline), medianOf(p.cpu), medianOf(p.serving)), p.ratios)
}

// timing is one round of one configuration.
type timing struct {
	apply, plan cost
	planGets    float64
}

// timeTerraform applies a configuration, plans it again, and destroys it.
func timeTerraform(ctx context.Context, o options, terraform string, configuration []byte, kubeconfig string, server *server) (timing, error) {
	dir, err := os.MkdirTemp("", "bench-provider-")
	if err != nil {
		return timing{}, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	rc := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/elastic-training/elastic\" = %q\n  }\n}\n", filepath.Join(o.root, "bin"))
	for name, text := range map[string][]byte{"main.tf": configuration, "terraform.rc": []byte(rc)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return timing{}, err
		}
	}
	run := func(args ...string) (cost, error) {
		command := exec.CommandContext(ctx, terraform, append(args, "-no-color", "-input=false")...)
		command.Dir = dir
		command.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "terraform.rc"), "CHECKPOINT_DISABLE=1", "KUBE_CONFIG_PATH="+kubeconfig)
		var output bytes.Buffer
		command.Stdout, command.Stderr = &output, &output
		before, err := server.processorTime()
		if err != nil {
			return cost{}, err
		}
		began := time.Now()
		if err := command.Run(); err != nil {
			text := output.String()
			return cost{}, fmt.Errorf("terraform %v: %w\n%s", args, err, text[max(0, len(text)-2000):])
		}
		took := cost{wall: time.Since(began), terraform: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
		after, err := server.processorTime()
		took.server = after - before
		return took, err
	}
	var t timing
	if t.apply, err = run("apply", "-auto-approve"); err != nil {
		return t, err
	}
	before, err := server.gets(ctx)
	if err != nil {
		return t, err
	}
	if t.plan, err = run("plan"); err != nil {
		return t, err
	}
	after, err := server.gets(ctx)
	if err != nil {
		return t, err
	}
	t.planGets = after - before
	_, err = run("destroy", "-auto-approve")
	return t, err
}

// server is the API server as something that costs time and counts its requests. A nil one costs and counts nothing.
type server struct {
	cluster *simcluster.Cluster
	client  *http.Client
	host    string
}

func newServer(cluster *simcluster.Cluster, config *rest.Config) (*server, error) {
	client, err := rest.HTTPClientFor(config)
	return &server{cluster: cluster, client: client, host: config.Host}, err
}

// clockTicks are in a second, in /proc (proc(5)); Linux has reported 100 to user space on every architecture for
// decades.
const clockTicks = 100

// processorTime is what the API server's process has used so far.
func (s *server) processorTime() (time.Duration, error) {
	if s == nil {
		return 0, nil
	}
	status, err := s.cluster.Status()
	if err != nil {
		return 0, err
	}
	for _, component := range status.Components {
		if component.Name != controlplane.APIServer {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", component.PID))
		if err != nil {
			return 0, err
		}
		// The second field, the command in parentheses, may hold spaces; utime and stime are the 14th and 15th.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		user, err := strconv.Atoi(fields[11])
		if err != nil {
			return 0, err
		}
		system, err := strconv.Atoi(fields[12])
		return time.Duration(user+system) * time.Second / clockTicks, err
	}
	return 0, fmt.Errorf("no %s runs", controlplane.APIServer)
}

// gets is how many GET requests for single objects of our kinds the API server has answered.
func (s *server) gets(ctx context.Context) (float64, error) {
	if s == nil {
		return 0, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.host+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return 0, fmt.Errorf("the API server's metrics: %w", err)
	}
	var count float64
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		ours := labels["group"] == "kueue.x-k8s.io" || labels["resource"] == "priorityclasses"
		if ours && labels["verb"] == "GET" && labels["subresource"] == "" {
			count += metric.GetCounter().GetValue()
		}
	}
	return count, nil
}
