// Package image builds the trainer's container image without a container engine. The image contains the static binary
// and a directory for its results; it runs as a user without privileges, also with a read-only root file system.
//
// The same commit and Go release give the same bytes on every machine: Compile removes paths, times and the environment
// from the binary, and the image contains only the given time. The package writes the formats that engines and
// importers read (WriteDocker, WriteOCI), loads an image into an engine of this machine (FindEngine, Engine.Load) and
// pushes it to a registry (Push). It does not sign or scan images.
//
// The image contains no CA certificates and no time zones. The trainer connects to its own master with a certificate of
// the job, contains the certificates for object stores if it is built with the tag objectstores, and writes times in
// UTC.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

const (
	// Repository is the image's name without a tag, as docs and examples write it.
	Repository = trainingjob.ImageRepository

	// Entrypoint is the trainer within the image.
	Entrypoint = "/elastic-trainer"

	// Output is a folder that the image's user owns. Engines give a new volume the owner of the folder that it hides,
	// so that a volume mounted here can be written.
	Output = "/output"

	// userID is "nonroot" by convention, and what the pods of training jobs ask for. A number, because a kubelet cannot
	// check runAsNonRoot on a name.
	userID = 65532
)

// Source is what an image is made from.
type Source struct {
	Version  string    // of the trainer: "0.1.0"; also what `elastic-trainer --version` says
	Revision string    // the git commit, or "" where it is unknown or the work tree has other changes
	Tags     string    // of the build, with commas, besides those of all builds: "objectstores"
	Created  time.Time // the commit's time, or zero where it is unknown: the time of building would differ every time
}

// Trainer is the image for one platform: linux on an architecture, in Go's words ("amd64", "arm64"). The binary is
// what Compile gives for the same architecture and source.
func Trainer(source Source, architecture string, binary []byte) (v1.Image, error) {
	layer, err := layerOf(source, binary)
	if err != nil {
		return nil, fmt.Errorf("the image's layer for linux/%s: %w", architecture, err)
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
		Created:   v1.Time{Time: source.Created},
		CreatedBy: "elastic-trainer " + source.Version,
	}})
	if err != nil {
		return nil, fmt.Errorf("the image for linux/%s: %w", architecture, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("the image for linux/%s: %w", architecture, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Created = v1.Time{Time: source.Created}
	config.Config.Entrypoint = []string{Entrypoint}
	config.Config.User = fmt.Sprintf("%d:%d", userID, userID)
	config.Config.WorkingDir = "/"
	config.Config.Labels = annotations(source)
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("the image for linux/%s: %w", architecture, err)
	}
	return mutate.Annotations(image, annotations(source)).(v1.Image), nil
}

// Index is the image for several platforms: what a registry serves under one name, each node taking its own.
func Index(source Source, images ...v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("the index of the image: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	return mutate.Annotations(index, annotations(source)).(v1.ImageIndex), nil
}

// annotations are the ones of the OCI image specification that registries and engines show. They stand in the config as
// labels, and on manifest and index, because each place has its readers.
func annotations(source Source) map[string]string {
	a := map[string]string{
		"title":         "elastic-trainer",
		"description":   "Master and workers of elastic, preemptible training jobs on Kubernetes",
		"licenses":      "MPL-2.0",
		"source":        "https://github.com/elastic-training/terraform-provider-elastic",
		"url":           "https://github.com/elastic-training/terraform-provider-elastic",
		"documentation": "https://registry.terraform.io/providers/elastic-training/elastic/latest/docs",
		"version":       source.Version,
	}
	if source.Revision != "" {
		a["revision"] = source.Revision
	}
	if !source.Created.IsZero() {
		a["created"] = source.Created.UTC().Format(time.RFC3339)
	}
	full := make(map[string]string, len(a))
	for name, value := range maps.All(a) {
		full["org.opencontainers.image."+name] = value
	}
	return full
}

// layerOf is the image's one layer.
func layerOf(source Source, binary []byte) (v1.Layer, error) {
	if len(binary) == 0 {
		return nil, errors.New("the binary is empty")
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	modified := source.Created
	if modified.IsZero() {
		modified = time.Unix(0, 0)
	}
	for _, entry := range []struct {
		header tar.Header
		data   []byte
	}{
		{tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(Entrypoint, "/"), Mode: 0o755, Size: int64(len(binary))}, binary},
		{tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(Output, "/") + "/", Mode: 0o755, Uid: userID, Gid: userID}, nil},
	} {
		entry.header.ModTime = modified.UTC().Truncate(time.Second)
		entry.header.Format = tar.FormatUSTAR
		if err := w.WriteHeader(&entry.header); err != nil {
			return nil, err
		}
		if _, err := w.Write(entry.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// Size of an image in bytes: Compressed is what a registry stores and a node downloads (manifest apart), Unpacked the
// files on a node.
type Size struct{ Compressed, Unpacked int64 }

// SizeOf measures an image.
func SizeOf(image v1.Image) (Size, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return Size{}, fmt.Errorf("the image's size: %w", err)
	}
	size := Size{Compressed: manifest.Config.Size}
	layers, err := image.Layers()
	if err != nil {
		return Size{}, fmt.Errorf("the image's size: %w", err)
	}
	for i, layer := range layers {
		size.Compressed += manifest.Layers[i].Size
		files, err := layer.Uncompressed()
		if err != nil {
			return Size{}, fmt.Errorf("the image's size: %w", err)
		}
		for r := tar.NewReader(files); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return Size{}, errors.Join(fmt.Errorf("the image's size: %w", err), files.Close())
			}
			size.Unpacked += header.Size
		}
		if err := files.Close(); err != nil {
			return Size{}, fmt.Errorf("the image's size: %w", err)
		}
	}
	return size, nil
}
