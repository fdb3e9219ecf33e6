//go:build !linux

package simcluster

import (
	"context"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

type supervisor struct{}

// Run returns ErrLinuxOnly.
func Run(context.Context, Options) (*Cluster, error) { return nil, ErrLinuxOnly }

// Close does nothing: there is no cluster.
func (c *Cluster) Close() error { return nil }

// Status returns ErrLinuxOnly.
func (c *Cluster) Status() (controlplane.Status, error) { return controlplane.Status{}, ErrLinuxOnly }

// KillComponent returns ErrLinuxOnly.
func (c *Cluster) KillComponent(context.Context, string) error { return ErrLinuxOnly }

// WaitReady returns ErrLinuxOnly.
func (c *Cluster) WaitReady(context.Context, ...string) error { return ErrLinuxOnly }

// StopNode returns ErrLinuxOnly.
func (c *Cluster) StopNode(context.Context, string, bool) error { return ErrLinuxOnly }

// StartNode returns ErrLinuxOnly.
func (c *Cluster) StartNode(context.Context, string) error { return ErrLinuxOnly }
