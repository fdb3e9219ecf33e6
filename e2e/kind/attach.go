package kind

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/cluster"
)

// Variables in which another process finds a cluster.
const (
	nameVariable       = "ELASTIC_KIND_CLUSTER"
	kubeconfigVariable = "ELASTIC_KIND_KUBECONFIG"
)

// ErrNoCluster is that of Attach where no process made a cluster for this one.
var ErrNoCluster = errors.New("no kind cluster was made for this process: run it by withkind, as `make e2e-kind` does")

// Environment is how another process finds the cluster, by Attach.
func (c *Cluster) Environment() []string {
	return []string{nameVariable + "=" + c.name, kubeconfigVariable + "=" + c.Kubeconfig}
}

// Attach is the cluster that another process made for this one, and deletes.
func Attach(ctx context.Context, logf func(format string, args ...any)) (*Cluster, error) {
	name, kubeconfig := os.Getenv(nameVariable), os.Getenv(kubeconfigVariable)
	if name == "" || kubeconfig == "" {
		return nil, ErrNoCluster
	}
	engine, err := FindEngine(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Kubeconfig: kubeconfig, name: name, engine: engine, logf: logf,
		provider: cluster.NewProvider(engine.provider(), cluster.ProviderWithLogger(progress{logf})),
	}
	if err := c.findNodes(); err != nil {
		return nil, err
	}
	if len(c.names) == 0 {
		return nil, fmt.Errorf("cluster %s has no nodes any more", name)
	}
	return c, nil
}
