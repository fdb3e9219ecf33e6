// Package scenario tells the project's stories on a cluster: it runs the real terraform with the real provider on the
// examples' configurations, records what the cluster does, and judges the record.
//
// Stories is the catalogue. Tell takes one of its stories and a Backend, and does everything else: the records, the
// output directory, the event log, the judgement, the timeline picture. A story does not know what its cluster is; the
// embedded one (package embedded), kind and a cluster that is there already are the same to it, and each supplies no more
// than a Cluster and, where it can be broken on purpose, its Faults.
//
// A story does not judge while it runs: it brings things about, waits for them, and writes the event log; the promises
// are checked on the log (Promises.Check), which is pure. Terraform runs under an account that has the rights which the
// documentation recommends and no others; what a story observes or breaks, it does as the administrator. It leaves the
// cluster as it found it.
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

// setting is what every story is told with.
type setting struct {
	cluster  Cluster
	tools    Tools
	examples string // the repository's examples
	dataDir  string // the story's records on this machine
	dir      string // an empty directory, for terraform's state and output, and for events.jsonl
	observe  func(eventlog.Event)
	say      func(format string, args ...any) // how long things take; it is no event
}

// Stages that more than one story has.
const (
	StageFinished = "finished"
	StageDestroy  = "destroy"
	StageCompare  = "compare"
)

// Limits of the waits. They are generous: a story that hangs says on what, one that is slow is not wrong.
const (
	startLimit   = 2 * time.Minute
	preemptLimit = 2 * time.Minute
	finishLimit  = 15 * time.Minute
)

// telling is a story while it is told.
type telling struct {
	setting
	clients clients
	log     *Log
	tf      *terraform
	vars    variables // of the configuration, as they are now

	before    []string // what was in the cluster before the story
	destroyed bool
}

// tell tells a story and returns its events, those of a story that failed too. What the story has not destroyed when it
// ends, because it failed or was interrupted, is destroyed for it.
func tell(ctx context.Context, story Story, s setting) (events []eventlog.Event, err error) {
	file, err := os.Create(filepath.Join(s.dir, "events.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("the event log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	output, err := os.Create(filepath.Join(s.dir, "terraform.log"))
	if err != nil {
		return nil, fmt.Errorf("the log of terraform: %w", err)
	}
	defer func() { err = errors.Join(err, output.Close()) }()

	t := &telling{setting: s, log: NewLog(file, s.observe)}
	err = t.run(ctx, story, output)
	return t.log.Events(), errors.Join(err, t.log.Err())
}

func (t *telling) run(ctx context.Context, story Story, output io.Writer) (err error) {
	if t.clients, err = connect(t.cluster.Kubeconfig); err != nil {
		return err
	}
	if err := recordNodes(ctx, t.clients.kubernetes, t.log); err != nil {
		return err
	}
	account, err := newAccount(ctx, t.clients.kubernetes, t.cluster, t.examples, t.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, inOrder(ctx, account.remove)) }()
	t.vars = variables{"config_path": account.kubeconfig, "namespace": t.cluster.Namespace}
	if t.tf, err = newTerraform(t.tools.Terraform, t.tools.Provider, t.examples, story.example, t.dir, output); err != nil {
		return err
	}
	if t.before, err = t.clients.inventory(ctx, t.cluster.Namespace); err != nil {
		return err
	}
	stop, err := t.clients.record(ctx, t.cluster.Namespace, t.log)
	if err != nil {
		return err
	}
	defer stop()
	defer func() {
		if t.destroyed {
			return
		}
		err = errors.Join(err, inOrder(ctx, func(ctx context.Context) error { return t.tf.destroy(ctx, t.vars) }))
	}()
	return story.tell(ctx, t)
}

// inOrder does what a story leaves to be done also when it was interrupted.
func inOrder(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
	defer cancel()
	return do(ctx)
}

// stage says what the story does now.
func (t *telling) stage(name, format string, args ...any) {
	t.log.Add(eventlog.Event{Stage: &eventlog.Stage{Name: name, Text: fmt.Sprintf(format, args...)}})
}

// apply applies the configuration with the variables as they are, and records what a plan would change after it.
func (t *telling) apply(ctx context.Context, stage string) error {
	if err := t.tf.apply(ctx, t.vars); err != nil {
		return fmt.Errorf("stage %s: %w", stage, err)
	}
	return t.plan(ctx, stage)
}

// plan records what a plan would change now.
func (t *telling) plan(ctx context.Context, after string) error {
	changes, err := t.tf.changes(ctx, t.vars)
	if err != nil {
		return fmt.Errorf("after stage %s: %w", after, err)
	}
	t.log.Add(eventlog.Event{Plan: &eventlog.Plan{After: after, Changes: changes}})
	return nil
}

// destroy destroys what the story made, and records what is left of it.
func (t *telling) destroy(ctx context.Context) error {
	t.stage(StageDestroy, "terraform destroy.")
	t.destroyed = true
	if err := t.tf.destroy(ctx, t.vars); err != nil {
		return err
	}
	rest, err := t.clients.left(ctx, t.cluster.Namespace, t.before)
	if err != nil {
		return err
	}
	t.log.Add(eventlog.Event{Left: &rest})
	return nil
}

func recordNodes(ctx context.Context, client kubernetes.Interface, log *Log) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		log.Add(eventlog.Event{Node: &eventlog.Node{
			Name:   node.Name,
			CPU:    node.Status.Allocatable.Cpu().String(),
			Memory: node.Status.Allocatable.Memory().String(),
		}})
	}
	return nil
}
