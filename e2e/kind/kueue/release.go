// Package kueue installs a release of the real Kueue on a cluster, for the scenarios with queues: it finds, adjusts and
// applies the manifests. It is for tests; users apply the manifests of the release themselves.
package kueue

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/addon"
)

// Version is the release that is downloaded where no local copy is named.
const Version = "v0.19.2"

const manifestsURL = "https://github.com/kubernetes-sigs/kueue/releases/download/" + Version + "/manifests.yaml"

// Variables that name local copies, for machines without a network.
const (
	manifestsVariable = "KUEUE_MANIFESTS" // a release's manifests.yaml, or a directory of such files
	imagesVariable    = "KUEUE_IMAGES"    // image archives, separated as PATH is
)

// ErrUnavailable is that there is no Kueue to be had: no local copy is named, and the download failed as it does
// without a network.
var ErrUnavailable = errors.New("no Kueue is to be had")

// Release is a Kueue that can be installed.
type Release struct {
	Objects  []*unstructured.Unstructured
	Archives []string // of images that nodes must have; none where they pull them
}

// Find finds a release: the local copies that the environment names, or the published one.
func Find(ctx context.Context) (Release, error) {
	release := Release{Archives: filepath.SplitList(os.Getenv(imagesVariable))}
	for _, archive := range release.Archives {
		if _, err := os.Stat(archive); err != nil {
			return Release{}, fmt.Errorf("%s: %w", imagesVariable, err)
		}
	}
	var err error
	if local := os.Getenv(manifestsVariable); local != "" {
		if release.Objects, err = readFiles(local); err != nil {
			return Release{}, fmt.Errorf("%s: %w", manifestsVariable, err)
		}
		return release, nil
	}
	text, err := download(ctx)
	if err != nil {
		return Release{}, err
	}
	if release.Objects, err = addon.ParseManifests(text); err != nil {
		return Release{}, fmt.Errorf("%s: %w", manifestsURL, err)
	}
	return release, nil
}

// readFiles reads a file of manifests, or all of a directory in the order of their names.
func readFiles(path string) ([]*unstructured.Unstructured, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, err
		}
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		more, err := addon.ParseManifests(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, more...)
	}
	if len(objects) == 0 {
		return nil, fmt.Errorf("%s holds no manifests", path)
	}
	return objects, nil
}

const (
	downloadLimit = time.Minute
	maxManifests  = 16 << 20 // bytes; the release's are 2 MB
)

// download gets the published manifests. That they are not published is a mistake of ours; everything else is taken for
// a machine without a network.
func download(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, downloadLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, manifestsURL, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; %s names a local copy", ErrUnavailable, err, manifestsVariable)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s: %s", manifestsURL, response.Status)
	default:
		return nil, fmt.Errorf("%w: %s answers %s; %s names a local copy", ErrUnavailable, manifestsURL, response.Status, manifestsVariable)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxManifests))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; %s names a local copy", ErrUnavailable, manifestsURL, err, manifestsVariable)
	}
	return text, nil
}
