package kind

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// Load loads the images of an archive, a docker one or an OCI one, into nodes, as `kind load image-archive` does.
func (c *Cluster) Load(ctx context.Context, archive string, names []string) error {
	all, err := c.provider.ListNodes(c.name)
	if err != nil {
		return fmt.Errorf("list the nodes' containers: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, node := range all {
		if !slices.Contains(names, node.String()) {
			continue
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := loadInto(node, archive); err != nil {
				return fmt.Errorf("load %s into node %s: %w", archive, node, explain(err))
			}
			return nil
		})
	}
	return group.Wait()
}

func loadInto(node nodes.Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	return nodeutils.LoadImageArchive(node, file)
}
