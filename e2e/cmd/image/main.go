// Command image builds the trainer's image for every platform and writes it as archives. It loads the image into a
// container engine, if one runs, and pushes it to the given registry. `make image` runs it.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
)

func main() {
	var o options
	flag.StringVar(&o.root, "root", "..", "root of the repository")
	flag.StringVar(&o.output, "output", "", "folder of the archives; empty is ROOT/dist")
	flag.StringVar(&o.version, "version", "dev", "the trainer's version, and the image's tag")
	flag.StringVar(&o.tags, "tags", "", "build tags, with commas: objectstores reads s3:// and gs://, and makes the image larger")
	flag.StringVar(&o.push, "push", "", "also push the image under this name: REGISTRY/NAME:TAG")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := o.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type options struct{ root, output, version, tags, push string }

func (o options) run(ctx context.Context, out io.Writer) error {
	tag, err := name.NewTag(image.Repository+":"+o.version, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("-version=%s: %w", o.version, err)
	}
	var destination name.Tag
	if o.push != "" { // refused before anything is built
		if destination, err = name.NewTag(o.push, name.StrictValidation); err != nil {
			return fmt.Errorf("-push=%s: %w; write REGISTRY/NAME:TAG", o.push, err)
		}
	}
	o.output = cmp.Or(o.output, filepath.Join(o.root, "dist"))
	source, err := image.SourceOf(ctx, o.root, o.version)
	if err != nil {
		return err
	}
	source.Tags = o.tags
	fmt.Fprintf(out, "%s\n", tag)
	images := make(map[string]v1.Image)
	var all []v1.Image
	for _, architecture := range image.Architectures() {
		binary, err := image.Compile(ctx, o.root, source, architecture)
		if err != nil {
			return err
		}
		built, err := image.Trainer(source, architecture, binary)
		if err != nil {
			return err
		}
		size, err := image.SizeOf(built)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  linux/%s: %.1f MB to download, %.1f MB unpacked\n", architecture, float64(size.Compressed)/1e6, float64(size.Unpacked)/1e6)
		images[architecture] = built
		all = append(all, built)
	}
	index, err := image.Index(source, all...)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "  %s\n", digest)
	if err := o.archive(out, tag, images, index); err != nil {
		return err
	}
	if err := o.load(ctx, out, tag, images); err != nil {
		return err
	}
	if o.push == "" {
		fmt.Fprintf(out, "in HCL:            image = \"%s\", once it is in the cluster's nodes\n", tag)
		fmt.Fprintln(out, "to push:           make image PUSH=REGISTRY/NAME:TAG, with the credentials of docker login or podman login")
		return nil
	}
	pushed, err := image.Push(ctx, destination, index)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "pushed:            %s\n", destination)
	fmt.Fprintf(out, "in HCL:            image = \"%s\"\n", pushed)
	return nil
}

// archive writes one archive for each platform, which everything reads, and one with all of them.
func (o options) archive(out io.Writer, tag name.Tag, images map[string]v1.Image, index v1.ImageIndex) error {
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	for _, architecture := range image.Architectures() {
		path := filepath.Join(o.output, "elastic-trainer-"+architecture+".tar")
		if err := write(path, func(w io.Writer) error { return image.WriteDocker(w, tag, images[architecture]) }); err != nil {
			return err
		}
		fmt.Fprintf(out, "%-18s %s (docker load, podman load, kind load image-archive, ctr images import)\n", "linux/"+architecture+":", path)
	}
	path := filepath.Join(o.output, "elastic-trainer-oci.tar")
	if err := write(path, func(w io.Writer) error { return image.WriteOCI(w, tag, index) }); err != nil {
		return err
	}
	fmt.Fprintf(out, "both, as OCI:      %s (podman load, skopeo copy --all oci-archive:…)\n", path)
	return nil
}

func (o options) load(ctx context.Context, out io.Writer, tag name.Tag, images map[string]v1.Image) error {
	engine, err := image.FindEngine(ctx)
	if errors.Is(err, image.ErrNoEngine) {
		fmt.Fprintf(out, "not loaded:        %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	fit, ok := images[engine.Architecture]
	if !ok {
		fmt.Fprintf(out, "not loaded:        %s is of another architecture\n", engine)
		return nil
	}
	if err := engine.Load(ctx, tag, fit); err != nil {
		return err
	}
	fmt.Fprintf(out, "loaded:            into %s; try: %s run --rm --read-only %s --help\n", engine, engine.Client, tag)
	return nil
}

// write makes a file, or none: a half-written archive would look like a whole one.
func write(path string, content func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	buffered := bufio.NewWriterSize(file, 1<<20)
	if err := errors.Join(content(buffered), buffered.Flush(), file.Chmod(0o644), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(file.Name(), path)
}
