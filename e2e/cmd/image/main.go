// Command image packs static elastic-trainer binaries into a multi-platform image, as an OCI layout in one tar file
// (what `skopeo copy oci-archive:…` and `crane push` read): nothing but the binary, run as a user without privileges. It needs no
// container engine, and the same binaries give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	entrypoint = "/elastic-trainer"
	user       = "65532:65532" // "nonroot" by convention; numeric, so that runAsNonRoot can be checked
)

func main() {
	output := flag.String("output", "", "the tar file to write")
	flag.Parse()
	if err := build(*output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// build writes the image of binaries given as ARCHITECTURE=FILE.
func build(output string, binaries []string) (err error) {
	if output == "" || len(binaries) == 0 {
		return errors.New("usage: image -output FILE ARCHITECTURE=BINARY …")
	}
	var index v1.ImageIndex = empty.Index
	for _, argument := range binaries {
		architecture, path, ok := strings.Cut(argument, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form ARCHITECTURE=BINARY", argument)
		}
		image, err := imageOf(architecture, path)
		if err != nil {
			return err
		}
		size, err := compressedSize(image)
		if err != nil {
			return err
		}
		fmt.Printf("  linux/%s: %.1f MB compressed\n", architecture, float64(size)/1e6)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}

	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := layout.Write(dir, index); err != nil {
		return fmt.Errorf("write the image's layout: %w", err)
	}
	written, err := archive(dir, output)
	if err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	fmt.Printf("%s: %.1f MB\n", output, float64(written)/1e6)
	return nil
}

// imageOf is an image for one architecture that holds one file, its entrypoint.
func imageOf(architecture, path string) (v1.Image, error) {
	binary, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the binary for %s: %w", architecture, err)
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	header := &tar.Header{Name: strings.TrimPrefix(entrypoint, "/"), Mode: 0o755, Size: int64(len(binary)), Format: tar.FormatPAX}
	if err := errors.Join(w.WriteHeader(header), writeAll(w, binary), w.Close()); err != nil {
		return nil, fmt.Errorf("the layer for %s: %w", architecture, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("the layer for %s: %w", architecture, err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, fmt.Errorf("the image for %s: %w", architecture, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("the image for %s: %w", architecture, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config.Entrypoint, config.Config.User = []string{entrypoint}, user
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "elastic-trainer",
		"org.opencontainers.image.licenses": "MPL-2.0",
		"org.opencontainers.image.source":   "https://github.com/elastic-training/terraform-provider-elastic",
	}
	return mutate.ConfigFile(image, config)
}

func writeAll(w io.Writer, data []byte) error {
	_, err := w.Write(data)
	return err
}

func compressedSize(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, err
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}

// archive writes the regular files below dir into a tar file, without times and owners, and says how large it is.
func archive(dir, output string) (written int64, err error) {
	file, err := os.Create(output)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
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
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		return writeAll(w, data)
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
