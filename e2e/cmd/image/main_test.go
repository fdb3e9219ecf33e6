package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestTheImageHoldsTheBinaryForEachArchitectureAndRunsItWithoutPrivileges(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "elastic-trainer")
	if err := os.WriteFile(binary, []byte("a static binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, second := filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")
	for _, output := range []string{first, second} {
		if err := build(output, []string{"amd64=" + binary, "arm64=" + binary}); err != nil {
			t.Fatal(err)
		}
	}
	files, again := untar(t, first), untar(t, second)
	if len(files) != len(again) || !bytes.Equal(files["index.json"], again["index.json"]) {
		t.Error("the same binary gives two different images")
	}

	var index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	var architectures []string
	for _, descriptor := range index.Manifests {
		architectures = append(architectures, descriptor.Platform.Architecture)
		var manifest v1.Manifest
		var config v1.ConfigFile
		unmarshal(t, files, descriptor.Digest, &manifest)
		unmarshal(t, files, manifest.Config.Digest, &config)
		if config.Config.User != user || strings.Join(config.Config.Entrypoint, " ") != entrypoint {
			t.Errorf("%s runs %v as %q", config.Architecture, config.Config.Entrypoint, config.Config.User)
		}
	}
	if strings.Join(architectures, " ") != "amd64 arm64" {
		t.Errorf("architectures %v", architectures)
	}
}

func TestAWrongArgumentIsNamed(t *testing.T) {
	output := filepath.Join(t.TempDir(), "image.tar")
	if err := build(output, []string{"amd64"}); err == nil || !strings.Contains(err.Error(), `"amd64"`) {
		t.Errorf("error %v", err)
	}
	if err := build(output, []string{"amd64=/nowhere/trainer"}); err == nil || !strings.Contains(err.Error(), "/nowhere/trainer") {
		t.Errorf("error %v", err)
	}
}

func untar(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func unmarshal(t *testing.T, files map[string][]byte, digest v1.Hash, into any) {
	t.Helper()
	name := "blobs/" + digest.Algorithm + "/" + digest.Hex
	if err := json.Unmarshal(files[name], into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}
