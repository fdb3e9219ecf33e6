// Package kind creates clusters for the scenarios with kind: one control plane, and workers of the tutorial's size on
// any host. It checks that every node is Ready and has the right size (kind reports success for a cluster whose workers
// do not run). Every wait has a time limit, and its error names what was expected. Closing a cluster removes its
// containers, its network unless that existed before, and its kubeconfig. Other packages decide what runs on the
// cluster.
package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/constants"
	kindexec "sigs.k8s.io/kind/pkg/exec"
)

// Options of a cluster.
type Options struct {
	Engine  Engine
	Name    string // of the cluster; one of that name that an earlier run left is deleted
	Dir     string // an existing directory for what the nodes mount, and for the kubeconfig, while the cluster lives
	Image   string // the nodes' image; "" is the one of kind's own release
	Workers int
	Machine Machine
	DataDir string // the workers have it at the same path, to read
	Logf    func(format string, args ...any)
}

// Cluster is a cluster that is there.
type Cluster struct {
	Kubeconfig string // a file of its own; the user's is never touched

	name     string
	names    []string // of the nodes
	machine  Machine
	engine   Engine
	provider *cluster.Provider
	logf     func(format string, args ...any)
	dir      string

	ownNetwork bool // the engine had no network of kind's before
}

// Name is the cluster's name.
func (c *Cluster) Name() string { return c.name }

const (
	createLimit = 8 * time.Minute
	deleteLimit = 2 * time.Minute
)

// network is the name that kind gives to the network of its clusters, unless its variable names another one.
func network() string {
	if named := os.Getenv("KIND_EXPERIMENTAL_DOCKER_NETWORK"); named != "" {
		return named
	}
	return "kind"
}

// Start makes a cluster and returns it when all of its nodes are Ready and report the configured size. A cluster that
// did not become what it should be is an error, after its logs were kept in logs below the directory, and is deleted,
// as it is when the context ends.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{
		Kubeconfig: filepath.Join(options.Dir, "kubeconfig"),
		name:       options.Name,
		machine:    options.Machine,
		engine:     options.Engine,
		provider:   cluster.NewProvider(options.Engine.provider(), cluster.ProviderWithLogger(progress{options.Logf})),
		logf:       options.Logf,
		dir:        options.Dir,
	}
	if err := c.deleteNodes(); err != nil {
		return nil, fmt.Errorf("what an earlier run may have left of it: %w", err)
	}
	machineDir := filepath.Join(options.Dir, "machine")
	if err := options.Machine.write(machineDir); err != nil {
		return nil, err
	}
	networks, err := c.engine.run(ctx, answerLimit, "network", "ls", "--format", "{{.Name}}")
	if err != nil {
		return nil, fmt.Errorf("the engine's networks: %w", err)
	}
	c.ownNetwork = !slices.Contains(strings.Fields(networks), network())

	if err := c.create(ctx, options, machineDir); err != nil {
		return nil, errors.Join(fmt.Errorf("make cluster %s: %w", c.name, err), c.Close())
	}
	return c, nil
}

// create makes the cluster and waits for its nodes.
func (c *Cluster) create(ctx context.Context, options Options, machineDir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, createLimit, fmt.Errorf("it did not happen within %s", createLimit))
	defer cancel()
	began := time.Now()
	made := make(chan error, 1)
	go func() {
		made <- c.provider.Create(c.name,
			cluster.CreateWithV1Alpha4Config(config(options.Workers, options.Machine, machineDir, options.DataDir)),
			cluster.CreateWithNodeImage(options.Image),
			cluster.CreateWithKubeconfigPath(c.Kubeconfig),
			cluster.CreateWithRetain(true), // the logs of a failure are kept first
			cluster.CreateWithDisplayUsage(false),
			cluster.CreateWithDisplaySalutation(false),
		)
	}()
	var err error
	select {
	case err = <-made:
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), c.abandon(made))
	}
	if err == nil {
		err = c.ready(ctx)
	}
	if err != nil {
		c.SaveLogs(filepath.Join(c.dir, "logs"))
		return explain(err)
	}
	c.logf("cluster %s: %d nodes are Ready after %.0f s, each worker with %d CPUs and %s", c.name, len(c.names),
		time.Since(began).Seconds(), c.machine.CPUs, c.machine.Memory.String())
	return nil
}

// abandonInterval is between two looks for nodes that kind has made since the last one.
const abandonInterval = 2 * time.Second

// abandon makes kind give up. It knows no context, but soon fails without its nodes, which are taken away as it makes
// them. What is there when it has ended is left to Close.
func (c *Cluster) abandon(made <-chan error) error {
	for {
		if err := c.deleteNodes(); err != nil {
			return err
		}
		select {
		case <-made:
			return nil
		case <-time.After(abandonInterval):
		}
	}
}

func (c *Cluster) ready(ctx context.Context) error {
	if err := c.findNodes(); err != nil {
		return err
	}
	restConfig, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
	}
	return c.awaitNodes(ctx, client)
}

// findNodes finds the containers of the cluster, each of which is a node.
func (c *Cluster) findNodes() error {
	nodes, err := c.provider.ListNodes(c.name)
	if err != nil {
		return fmt.Errorf("list the nodes' containers: %w", explain(err))
	}
	for _, node := range nodes {
		c.names = append(c.names, node.String())
	}
	slices.Sort(c.names)
	return nil
}

// ControlPlane is the name of the control plane's node, and of its container.
func (c *Cluster) ControlPlane() string {
	return c.name + "-" + constants.ControlPlaneNodeRoleValue
}

// Workers are the names of the workers, which are those of their containers too.
func (c *Cluster) Workers() []string {
	return slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return !c.isWorker(name) })
}

// isWorker goes by kind's names: NAME-control-plane, NAME-worker, NAME-worker2 and so on.
func (c *Cluster) isWorker(node string) bool {
	return strings.HasPrefix(node, c.name+"-"+constants.WorkerNodeRoleValue)
}

// Close deletes the cluster and everything that was made for it.
func (c *Cluster) Close() error {
	err := c.deleteNodes()
	if c.ownNetwork {
		ctx, cancel := context.WithTimeout(context.Background(), nodeLimit)
		defer cancel()
		// Another cluster may have come meanwhile, and have its nodes in it.
		used, inspectErr := c.engine.run(ctx, answerLimit, "network", "inspect", "--format", "{{len .Containers}}", network())
		if inspectErr == nil && strings.TrimSpace(used) == "0" {
			_, removeErr := c.engine.run(ctx, nodeLimit, "network", "rm", network())
			err = errors.Join(err, removeErr)
		}
	}
	err = errors.Join(err, os.RemoveAll(c.Kubeconfig), os.RemoveAll(filepath.Join(c.dir, "machine")))
	if err != nil {
		return fmt.Errorf("delete cluster %s: %w", c.name, err)
	}
	return nil
}

// deleteNodes deletes the containers of the nodes, with their volumes. It has its own deadline: it is done also when
// everything else was interrupted.
func (c *Cluster) deleteNodes() error {
	done := make(chan error, 1)
	go func() { done <- c.provider.Delete(c.name, c.Kubeconfig) }()
	select {
	case err := <-done:
		return explain(err)
	case <-time.After(deleteLimit):
		return fmt.Errorf("%s has not deleted the nodes within %s", c.engine, deleteLimit)
	}
}

// explain adds what a failed command of kind's printed to its error.
func explain(err error) error {
	const tail = 2000
	failed := kindexec.RunErrorForError(err)
	if failed == nil {
		return err
	}
	output := strings.TrimSpace(string(failed.Output))
	if len(output) > tail {
		output = "… " + output[len(output)-tail:]
	}
	if output == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, output)
}
