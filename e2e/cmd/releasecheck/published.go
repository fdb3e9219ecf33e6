package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// published is a target's binary in the archive of a release, as .goreleaser.yml names both.
func published(dir string, t target, version string) ([]byte, error) {
	archive, binary := fmt.Sprintf("elastic-tools_%s_%s_%s.tar.gz", version, t.system, t.processor), t.id
	if t.id == "provider" {
		archive, binary = fmt.Sprintf("terraform-provider-elastic_%s_%s_%s.zip", version, t.system, t.processor), "terraform-provider-elastic_v"+version
	}
	if t.system == "windows" {
		binary += ".exe"
		if t.id != "provider" {
			archive = fmt.Sprintf("elastic-tools_%s_windows_%s.zip", version, t.processor)
		}
	}
	path := filepath.Join(dir, archive)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	of := inTar
	if filepath.Ext(path) == ".zip" {
		of = inZip
	}
	content, err := of(text, binary)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", path, binary, err)
	}
	return content, nil
}

func inZip(archive []byte, name string) ([]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

func inTar(archive []byte, name string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if err != nil {
			return nil, err
		}
		if filepath.Base(header.Name) == name {
			return io.ReadAll(r)
		}
	}
}
