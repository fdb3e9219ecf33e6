package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheReleaseIsBuiltWithTheFlagsThatTheTestsAreBuiltWith(t *testing.T) {
	text, err := os.ReadFile("../../../.goreleaser.yml")
	if err != nil {
		t.Fatal(err)
	}
	targets, err := parse(text, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../../GNUmakefile")
	if err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(string(makefile), "export GOFLAGS := ")
	flags, _, _ = strings.Cut(flags, "\n")
	built := map[string]int{}
	for _, b := range targets {
		built[b.id]++
		if strings.Join(b.flags, " ") != flags || !slices.Contains(b.env, "CGO_ENABLED=0") || !strings.Contains(b.ldflags, "main.version=1.2.3") {
			t.Errorf("%s: flags %q, environment %q, ldflags %q; make has %q", b.name(), b.flags, b.env, b.ldflags, flags)
		}
	}
	if built["provider"] != 6 || built["elastic-sim"] != 6 || built["elastic-trainer"] != 2 {
		t.Errorf("built for so many platforms: %v", built)
	}
}

func TestATemplateThatOnlyGoreleaserKnowsIsRefused(t *testing.T) {
	_, err := parse([]byte("builds: [{id: a, main: ., goos: [linux], goarch: [amd64], ldflags: ['-X main.date={{ .Date }}']}]"), "1")
	if err == nil || !strings.Contains(err.Error(), "main.date={{ .Date }}") {
		t.Errorf("%v", err)
	}
	if _, err := parse([]byte("builds: []"), "1"); err == nil {
		t.Error("nothing is built, and no error")
	}
}

func TestABinaryIsFoundInTheArchiveThatAReleaseHasItIn(t *testing.T) {
	dir := t.TempDir()
	var zipped, tarred bytes.Buffer
	z := zip.NewWriter(&zipped)
	f, err := z.Create("terraform-provider-elastic_v1.2.3")
	if err == nil {
		_, err = f.Write([]byte("the provider"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	g := gzip.NewWriter(&tarred)
	w := tar.NewWriter(g)
	for name, text := range map[string]string{"LICENSE": "words", "elastic-sim": "the simulator"} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o755}))
		_, wrote := w.Write([]byte(text))
		err = errors.Join(err, wrote)
	}
	err = errors.Join(err, w.Close(), g.Close(),
		os.WriteFile(filepath.Join(dir, "terraform-provider-elastic_1.2.3_linux_amd64.zip"), zipped.Bytes(), 0o600),
		os.WriteFile(filepath.Join(dir, "elastic-tools_1.2.3_linux_amd64.tar.gz"), tarred.Bytes(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"provider": "the provider", "elastic-sim": "the simulator"} {
		if got, err := published(dir, target{id: id, system: "linux", processor: "amd64"}, "1.2.3"); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", id, got, err)
		}
	}
	for _, missing := range []target{{id: "elastic-trainer", system: "linux", processor: "amd64"}, {id: "provider", system: "linux", processor: "arm64"}} {
		if _, err := published(dir, missing, "1.2.3"); err == nil {
			t.Errorf("%s was found", missing.name())
		}
	}
}
