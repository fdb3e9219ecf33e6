// Package onkind runs all scenarios on one kind cluster, which another process (command withkind, package kind) creates
// and deletes. It adds what a bare cluster lacks: images, declared GPUs, Kueue.
package onkind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/klient"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
	"github.com/elastic-training/terraform-provider-elastic/e2e/kind"
	"github.com/elastic-training/terraform-provider-elastic/e2e/kind/kueue"
	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// namespace is the namespace of the scenarios.
const namespace = "default"

// shellImage is for the commands of tasks.
const shellImage = "elastic.test/shell:v1"

// Backend is a kind cluster for scenarios.
type Backend struct {
	cluster *kind.Cluster
	client  klient.Client
	trainer name.Tag
	version string
	root    string
	logf    func(format string, args ...any)

	// The result of Kueue's installation, once a scenario needed it.
	kueueTried bool
	kueueErr   error
}

// New returns the backend on a cluster. It builds the trainer's image from the repository in root, with that version.
func New(cluster *kind.Cluster, client klient.Client, root, version string, logf func(format string, args ...any)) (*Backend, error) {
	trainer, err := name.NewTag(image.Repository + ":" + version)
	if err != nil {
		return nil, fmt.Errorf("the trainer's image: %w", err)
	}
	return &Backend{cluster: cluster, client: client, trainer: trainer, version: version, root: root, logf: logf}, nil
}

// Load builds the images and loads them into the workers. Their archives stay in dir.
func (b *Backend) Load(ctx context.Context, dir string) error {
	began := time.Now()
	var node corev1.Node
	if err := b.client.Resources().Get(ctx, b.cluster.ControlPlane(), "", &node); err != nil {
		return fmt.Errorf("the control plane's node: %w", err)
	}
	architecture := node.Status.NodeInfo.Architecture

	source, err := image.SourceOf(ctx, b.root, b.version)
	if err != nil {
		return fmt.Errorf("the trainer's image: %w", err)
	}
	binary, err := image.Compile(ctx, b.root, source, architecture)
	if err != nil {
		return err
	}
	trainer, err := image.Trainer(source, architecture, binary)
	if err != nil {
		return err
	}
	trainerArchive := filepath.Join(dir, "elastic-trainer.tar")
	file, err := os.Create(trainerArchive)
	if err != nil {
		return fmt.Errorf("the trainer's image: %w", err)
	}
	if err := errors.Join(image.WriteDocker(file, b.trainer, trainer), file.Close()); err != nil {
		return err
	}
	shell, err := name.NewTag(shellImage)
	if err != nil {
		return err
	}
	shellArchive := filepath.Join(dir, "shell.tar")
	if err := b.cluster.WriteShellImage(ctx, shell, architecture, shellArchive); err != nil {
		return err
	}
	for _, archive := range []string{trainerArchive, shellArchive} {
		if err := b.cluster.Load(ctx, archive, b.cluster.Workers()); err != nil {
			return err
		}
	}
	b.logf("Images: %s and %s are on the workers after %.0f s.", b.trainer, shell, time.Since(began).Seconds())
	return nil
}

// Cluster adds what a scenario needs. Additions stay for later scenarios, except for the GPUs, whose taint would take a
// node away from the others.
func (b *Backend) Cluster(ctx context.Context, sc scenario.Scenario, options scenario.ClusterOptions) (scenario.Cluster, func() error, error) {
	nothing := func() error { return nil }
	if sc.Requirements.PyTorch {
		return scenario.Cluster{}, nil, &scenario.UnsupportedError{Scenario: sc.Name, Reason: "the trainer's image has no PyTorch"}
	}
	if sc.Requirements.Kueue {
		if err := b.needKueue(ctx); errors.Is(err, kueue.ErrUnavailable) {
			return scenario.Cluster{}, nil, &scenario.UnsupportedError{Scenario: sc.Name, Reason: err.Error()}
		} else if err != nil {
			return scenario.Cluster{}, nil, err
		}
	}
	release := nothing
	if sc.Requirements.GPUs {
		workers := b.cluster.Workers()
		node := workers[len(workers)-1]
		if err := attachGPUs(ctx, b.client, node); err != nil {
			return scenario.Cluster{}, nil, err
		}
		release = func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachLimit)
			defer cancel()
			return detachGPUs(ctx, b.client, node)
		}
	}
	return scenario.Cluster{
		Kubeconfig: b.cluster.Kubeconfig, Namespace: namespace, Image: b.trainer.Name(), TaskImage: shellImage,
		DataDir: options.DataDir, // the workers have it at the same path
		Faults:  b.cluster,
	}, release, nil
}

// needKueue installs Kueue when it is first needed.
func (b *Backend) needKueue(ctx context.Context) error {
	if !b.kueueTried {
		b.kueueTried, b.kueueErr = true, b.installKueue(ctx)
	}
	return b.kueueErr
}

func (b *Backend) installKueue(ctx context.Context) error {
	release, err := kueue.Find(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	// Its manager runs beside the control plane.
	for _, archive := range release.Archives {
		if err := b.cluster.Load(ctx, archive, []string{b.cluster.ControlPlane()}); err != nil {
			return err
		}
	}
	if err := kueue.Install(ctx, b.client, release); err != nil {
		return err
	}
	b.logf("Kueue: its webhooks answer after %.0f s.", time.Since(began).Seconds())
	return nil
}
