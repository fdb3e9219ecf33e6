// Package scenario runs the project's end-to-end scenarios on a cluster: it runs the real terraform with the real
// provider on the examples' configurations, records the states of the cluster's objects in an event log, and checks
// assertions on that log.
//
// Scenarios is the catalogue. Run takes one of its scenarios and a Backend. It prepares the training data and the
// output directory, writes the event log, checks the assertions and draws the timeline. A scenario does not depend on
// the kind of its cluster: an embedded cluster (package embedded), a kind cluster (package onkind) or an existing
// cluster each supply a Cluster and, where faults can be injected, its Faults.
//
// A Scenario is Go code that drives a real cluster. A scenario file (package scenariofile of the simulator) is YAML for
// elastic-sim, which simulates it in virtual time. Replay runs such a file on a real cluster, so that the two can be
// compared.
//
// A scenario checks nothing while it runs: it acts, waits for conditions, and writes the event log. Assertions.Check,
// which is pure, checks the log afterwards. Terraform runs under a ServiceAccount with the recommended roles and no
// others; the scenario observes the cluster and injects faults as administrator. It leaves the cluster as it found it.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// environment holds what every scenario runs with.
type environment struct {
	cluster  Cluster
	tools    Tools
	examples string // the repository's examples
	dataDir  string // the scenario's records on this machine
	dir      string // an empty directory, for terraform's state and output, and for events.jsonl
	observe  func(eventlog.Event)
	logf     func(format string, args ...any) // how long things take; it is no event
}

// Stages that more than one scenario has.
const (
	StageFinished = "finished"
	StageDestroy  = "destroy"
	StageCompare  = "compare"
)

// Timeouts of the waits. They are generous: a slow machine must not fail a scenario, and one that hangs reports what it
// waiting for.
const (
	startLimit   = 2 * time.Minute
	preemptLimit = 2 * time.Minute
	finishLimit  = 15 * time.Minute
)

// runner runs one scenario.
type runner struct {
	environment
	clients clients
	log     *Log
	tf      *terraform
	vars    variables // of the configuration, as they are now

	before    []string // the objects of the cluster before the scenario
	destroyed bool
}

// runScenario runs a scenario and returns its events, also those of one that failed. When a scenario fails or is
// interrupted, runScenario destroys the resources that are left.
func runScenario(ctx context.Context, scenario Scenario, env environment) (events []eventlog.Event, err error) {
	file, err := os.Create(filepath.Join(env.dir, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("create the event log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	output, err := os.Create(filepath.Join(env.dir, "terraform.log"))
	if err != nil {
		return nil, fmt.Errorf("create terraform's log: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()

	r := &runner{environment: env, log: NewLog(file, env.observe)}
	err = r.execute(ctx, scenario, output)
	return r.log.Events(), errors.Join(err, r.log.Err())
}

func (r *runner) execute(ctx context.Context, scenario Scenario, output io.Writer) (err error) {
	if r.clients, err = connect(r.cluster.Kubeconfig); err != nil {
		return err
	}
	if err := recordNodes(ctx, r.clients.kubernetes, r.log, noLevels); err != nil {
		return err
	}
	restore, err := enforceStandard(ctx, r.clients.kubernetes, r.cluster.Namespace, scenario.Requirements.standard())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, withCleanupTimeout(ctx, restore)) }()
	account, err := newAccount(ctx, r.clients.kubernetes, r.cluster, r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, withCleanupTimeout(ctx, account.remove)) }()
	r.vars = variables{"config_path": account.kubeconfig, "namespace": r.cluster.Namespace}
	if r.tf, err = newTerraform(r.tools.Terraform, r.tools.Provider, r.examples, scenario.example, r.dir, output); err != nil {
		return err
	}
	if r.before, err = r.clients.inventory(ctx, r.cluster.Namespace); err != nil {
		return err
	}
	stop, err := r.clients.record(ctx, r.cluster.Namespace, r.log)
	if err != nil {
		return err
	}
	defer stop()
	defer func() {
		if r.destroyed {
			return
		}
		err = errors.Join(err, withCleanupTimeout(ctx, func(ctx context.Context) error { return r.tf.destroy(ctx, r.vars) }))
	}()
	return scenario.run(ctx, r)
}

// withCleanupTimeout calls cleanUp with a context of its own, so that an interrupted scenario cleans up too.
func withCleanupTimeout(ctx context.Context, cleanUp func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	return cleanUp(ctx)
}

// beginStage records the next stage of the scenario.
func (r *runner) beginStage(name, format string, args ...any) {
	r.log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: name, Text: fmt.Sprintf(format, args...)}})
}

// apply applies the configuration with the current variables, then records a plan.
func (r *runner) apply(ctx context.Context, stage string) error {
	if err := r.tf.apply(ctx, r.vars); err != nil {
		return fmt.Errorf("stage %s: %w", stage, err)
	}
	return r.plan(ctx, stage)
}

// plan records the changes of a terraform plan.
func (r *runner) plan(ctx context.Context, after string) error {
	changes, err := r.tf.changes(ctx, r.vars)
	if err != nil {
		return fmt.Errorf("after stage %s: %w", after, err)
	}
	r.log.Add(eventlog.Event{Plan: &eventlog.Plan{After: after, Changes: changes}})
	return nil
}

// forecast records the warnings of a terraform plan, made with the variables of the stage that it precedes.
func (r *runner) forecast(ctx context.Context, before string) error {
	text, err := r.tf.warnings(ctx, r.vars)
	if err != nil {
		return fmt.Errorf("before stage %s: %w", before, err)
	}
	r.log.Add(eventlog.Event{Forecast: &eventlog.Forecast{Before: before, Text: text}})
	return nil
}

// destroy destroys the scenario's resources and records the objects that are left.
func (r *runner) destroy(ctx context.Context) error {
	r.beginStage(StageDestroy, "terraform destroy.")
	r.destroyed = true
	if err := r.tf.destroy(ctx, r.vars); err != nil {
		return err
	}
	leftovers, err := r.clients.leftovers(ctx, r.cluster.Namespace, r.before)
	if err != nil {
		return err
	}
	r.log.Add(eventlog.Event{Leftovers: &leftovers})
	return nil
}

func recordNodes(ctx context.Context, client kubernetes.Interface, log *Log, levels func(map[string]string) []string) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		state := eventlog.Node{
			Name:   node.Name,
			CPU:    node.Status.Allocatable.Cpu().String(),
			Memory: node.Status.Allocatable.Memory().String(),
		}
		for _, level := range levels(node.Labels) {
			state.Domains = append(state.Domains, eventlog.Domain{Level: level, Name: node.Labels[level]})
		}
		log.Add(eventlog.Event{Node: &state})
	}
	return nil
}

// noLevels are the levels of the nodes of a scenario without topologies.
func noLevels(map[string]string) []string { return nil }
