package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteDocker writes the image of one platform in the format of `docker save`, under the name that it will have. Every
// engine and importer reads it: docker load, podman load, kind load image-archive, ctr images import, and skopeo's
// docker-archive.
func WriteDocker(w io.Writer, tag name.Tag, image v1.Image) error {
	if err := tarball.Write(tag, image, w); err != nil {
		return fmt.Errorf("write %s as a docker archive: %w", tag, err)
	}
	return nil
}

// WriteOCI writes the image of all platforms as an OCI layout in one tar, under the name that it will have: for podman
// load, ctr images import, kind load image-archive, skopeo's oci-archive, and docker load where docker keeps images in
// containerd (new installations since Docker 29). Docker 20.10 answers "blobs/json: no such file or directory" to it:
// what older dockers take is WriteDocker's.
//
// The tar's own index has one entry, the image's index, because skopeo and podman refuse to choose among several.
func WriteOCI(w io.Writer, tag name.Tag, index v1.ImageIndex) (err error) {
	dir, err := os.MkdirTemp("", "elastic-trainer-oci-")
	if err != nil {
		return fmt.Errorf("write %s as an OCI archive: %w", tag, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	named := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{
			"io.containerd.image.name":          tag.Name(), // containerd's importer, and docker's with it
			"org.opencontainers.image.ref.name": tag.Name(), // podman names the image by it
		},
	}})
	if _, err := layout.Write(dir, named); err != nil {
		return fmt.Errorf("write %s as an OCI archive: %w", tag, err)
	}
	if err := writeTar(w, dir); err != nil {
		return fmt.Errorf("write %s as an OCI archive: %w", tag, err)
	}
	return nil
}

// writeTar writes the regular files below dir in the order of their names, without times and owners.
func writeTar(out io.Writer, dir string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// Push writes the image of all platforms to a registry and returns its name by digest, which is what a careful
// configuration refers to. Credentials are those of `docker login` or `podman login`.
func Push(ctx context.Context, tag name.Tag, index v1.ImageIndex) (name.Digest, error) {
	digest, err := index.Digest()
	if err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w", tag, err)
	}
	err = remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w; log in with: docker login %s", tag, err, tag.RegistryStr())
	}
	return tag.Digest(digest.String()), nil
}
