package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
)

var (
	source = image.Source{Version: "0.1.0", Revision: "0123456789abcdef0123456789abcdef01234567", Created: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	tag    = mustTag("registry.test/team/elastic-trainer:0.1.0")
)

func mustTag(s string) name.Tag {
	t, err := name.NewTag(s, name.StrictValidation)
	if err != nil {
		panic(err)
	}
	return t
}

// trainer is an image whose binary is not a program: nothing here runs it.
func trainer(t *testing.T, source image.Source, architecture string) v1.Image {
	t.Helper()
	built, err := image.Trainer(source, architecture, []byte("a static binary for "+architecture))
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func both(t *testing.T, source image.Source) v1.ImageIndex {
	t.Helper()
	index, err := image.Index(source, trainer(t, source, "amd64"), trainer(t, source, "arm64"))
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestTheImageIsOneBinaryAndOneFolderForAUserWithoutPrivileges(t *testing.T) {
	built := trainer(t, source, "arm64")
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || !config.Created.Equal(source.Created) {
		t.Errorf("platform %s, created %v", config.Platform(), config.Created)
	}
	if got := strings.Join(config.Config.Entrypoint, " "); got != "/elastic-trainer" || config.Config.User != "65532:65532" {
		t.Errorf("it runs %q as %q", got, config.Config.User)
	}
	layers, err := built.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	files, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	var listing []string
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(source.Created) {
			t.Errorf("%s has the time %v", header.Name, header.ModTime)
		}
		listing = append(listing, header.FileInfo().Mode().String()+" "+header.Name)
	}
	if got := strings.Join(listing, ", "); got != "-rwxr-xr-x elastic-trainer, drwxr-xr-x output/" {
		t.Errorf("files: %s", got)
	}
}

func TestWhatRegistriesShowStandsInConfigManifestAndIndex(t *testing.T) {
	index := both(t, source)
	top, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	built, err := index.Image(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := built.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for place, labels := range map[string]map[string]string{"index": top.Annotations, "manifest": manifest.Annotations, "config": config.Config.Labels} {
		for label, want := range map[string]string{
			"title": "elastic-trainer", "licenses": "MPL-2.0", "version": "0.1.0", "revision": source.Revision, "created": "2026-07-01T12:00:00Z",
			"source": "https://github.com/elastic-training/terraform-provider-elastic",
		} {
			if got := labels["org.opencontainers.image."+label]; got != want {
				t.Errorf("%s: %s is %q, not %q", place, label, got, want)
			}
		}
	}
	unknown := trainer(t, image.Source{Version: "dev"}, "amd64")
	config, err = unknown.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	for label := range config.Config.Labels {
		if strings.HasSuffix(label, ".revision") || strings.HasSuffix(label, ".created") {
			t.Errorf("a source without a commit is labelled %s", label)
		}
	}
}

func TestTheSameSourceGivesTheSameArchivesByteForByte(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"docker": func(w io.Writer) error { return image.WriteDocker(w, tag, trainer(t, source, "amd64")) },
		"OCI":    func(w io.Writer) error { return image.WriteOCI(w, tag, both(t, source)) },
	} {
		t.Run(name, func(t *testing.T) {
			var first, second bytes.Buffer
			if err := errors.Join(write(&first), write(&second)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("two archives of one source differ")
			}
		})
	}
}

func TestTheDockerArchiveHoldsTheImageUnderItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	want := trainer(t, source, "amd64")
	if err := errors.Join(image.WriteDocker(file, tag, want), file.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	sameConfig(t, got, want)
}

func TestTheOCIArchiveHoldsOneNamedImageForBothPlatforms(t *testing.T) {
	index := both(t, source)
	var archive bytes.Buffer
	if err := image.WriteOCI(&archive, tag, index); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	untar(t, dir, &archive)
	named, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(named); err != nil {
		t.Error(err)
	}
	top, err := named.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 || top.Manifests[0].Digest != want || top.Manifests[0].Annotations["io.containerd.image.name"] != tag.Name() {
		t.Fatalf("the archive's index: %+v", top.Manifests)
	}
	inner, err := named.ImageIndex(want)
	if err != nil {
		t.Fatal(err)
	}
	platforms(t, inner)
}

func TestAPushedImageIsPulledForEitherPlatform(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	destination := mustTag(strings.TrimPrefix(server.URL, "http://") + "/team/elastic-trainer:0.1.0")
	index := both(t, source)
	pushed, err := image.Push(t.Context(), destination, index)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(pushed, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	platforms(t, pulled)
	for _, architecture := range image.Architectures() {
		got, err := remote.Image(destination, remote.WithContext(t.Context()), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		sameConfig(t, got, trainer(t, source, architecture))
	}
}

func TestAPushThatFailsNamesTheImageAndTheWayToLogIn(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	address := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	_, err := image.Push(t.Context(), mustTag(address+"/elastic-trainer:0.1.0"), both(t, source))
	if err == nil || !strings.Contains(err.Error(), "elastic-trainer:0.1.0") || !strings.Contains(err.Error(), "docker login "+address) {
		t.Errorf("error %v", err)
	}
}

func TestAnEmptyBinaryIsRefused(t *testing.T) {
	if _, err := image.Trainer(source, "amd64", nil); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("error %v", err)
	}
}

func sameConfig(t *testing.T, got, want v1.Image) {
	t.Helper()
	a, errA := got.ConfigName()
	b, errB := want.ConfigName()
	if err := errors.Join(errA, errB); err != nil || a != b {
		t.Errorf("image %v, not %v; %v", a, b, err)
	}
}

func platforms(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, descriptor := range manifest.Manifests {
		got = append(got, descriptor.Platform.String())
	}
	if strings.Join(got, " ") != "linux/amd64 linux/arm64" {
		t.Errorf("platforms %v", got)
	}
}

func untar(t *testing.T, dir string, archive io.Reader) {
	t.Helper()
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(header.Name))
		data, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
