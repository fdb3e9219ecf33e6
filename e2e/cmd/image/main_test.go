package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
)

const root = "../../.."

func TestArchivesAreWrittenTheImageIsPushedAndTheNextStepIsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the trainer for two architectures")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	o := options{root: root, output: t.TempDir(), version: "0.0.0-test", push: strings.TrimPrefix(server.URL, "http://") + "/team/trainer:1"}
	tag, err := name.NewTag(image.Repository + ":" + o.version)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // it was loaded where an engine answers
		ctx := context.WithoutCancel(t.Context())
		if engine, err := image.FindEngine(ctx); err == nil {
			_ = engine.Untag(ctx, tag)
		}
	}()
	var output bytes.Buffer
	if err := o.run(t.Context(), &output); err != nil {
		t.Fatal(err)
	}

	files, err := os.ReadDir(o.output)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	if got := strings.Join(names, " "); got != "elastic-trainer-amd64.tar elastic-trainer-arm64.tar elastic-trainer-oci.tar" {
		t.Errorf("dist has %s", got)
	}
	for _, architecture := range image.Architectures() {
		built, err := tarball.ImageFromPath(filepath.Join(o.output, "elastic-trainer-"+architecture+".tar"), &tag)
		if err != nil {
			t.Fatal(err)
		}
		if config, err := built.ConfigFile(); err != nil || config.Architecture != architecture {
			t.Errorf("the archive for %s is for %s; %v", architecture, config.Architecture, err)
		}
	}

	pushed := regexp.MustCompile(`image = "(.*)"`).FindStringSubmatch(output.String())
	if pushed == nil {
		t.Fatalf("it does not say what to write in HCL:\n%s", &output)
	}
	digest, err := name.NewDigest(pushed[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Index(digest, remote.WithContext(t.Context())); err != nil {
		t.Error(err)
	}
	for _, sentence := range []string{tag.Name(), "linux/amd64: ", "MB to download", "loaded:"} {
		if !strings.Contains(strings.ReplaceAll(output.String(), "not loaded:", "loaded:"), sentence) {
			t.Errorf("it does not say %q:\n%s", sentence, &output)
		}
	}
}

func TestWrongNamesAreRefusedBeforeAnythingIsBuilt(t *testing.T) {
	for name, test := range map[string]struct {
		o    options
		want string
	}{
		"a version that is no tag":    {options{version: "a version"}, "-version=a version"},
		"a destination without a tag": {options{version: "1", push: "registry.test/trainer"}, "REGISTRY/NAME:TAG"},
	} {
		t.Run(name, func(t *testing.T) {
			test.o.root = filepath.Join(t.TempDir(), "nowhere")
			if err := test.o.run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
