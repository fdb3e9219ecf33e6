package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
)

// shellFiles prints a tar of a shell, of what tasks' scripts call, and of the libraries that these load. The loader and
// the libraries are where the programs look for them, and links are followed: /bin is one in a merged /usr.
const shellFiles = `
set -e
cd /
programs=
for name in sh bash cat chmod cp date echo env kill ln ls mkdir rm sleep test true; do
  path=$(command -v "$name" || true)
  case $path in /*) programs="$programs $path" ;; esac
done
[ -x /bin/sh ] && programs="$programs /bin/sh"
libraries=$(ldd $programs 2>/dev/null | grep -o '/[^ :)]*' || true)
printf '%s\n' $programs $libraries | sort -u | sed 's,^/,,' | tar --create --dereference --files-from=- --file=-
`

// WriteShellImage writes a docker archive of an image with a shell, for the commands of tasks, made of files of a node:
// it needs no registry. The architecture is the node's, in Go's words.
func (c *Cluster) WriteShellImage(ctx context.Context, tag name.Tag, architecture, archive string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("an image with a shell, of the files of node %s: %w", c.ControlPlane(), err)
		}
	}()
	files, err := c.engine.run(ctx, nodeLimit, "exec", c.ControlPlane(), "sh", "-c", shellFiles)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(files)), nil
	})
	if err != nil {
		return err
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return err
	}
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	return errors.Join(image.WriteDocker(file, tag, made), file.Close())
}
