package data

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
)

// pickPair finds the one file of images and its labels. A directory with the training and the test images would train
// on the test set, so it is not accepted as either.
func pickPair(ctx context.Context, root string, entries []entry) (images, labels entry, err error) {
	if len(entries) == 1 && entries[0].absolute == root { // a file: its labels lie beside it
		for _, name := range idx.LabelsNames(entries[0].relative) {
			if labels, there, err := entries[0].in.beside(ctx, name); there || err != nil {
				return entries[0], labels, err
			}
		}
		return pairOf(entries[0], nil)
	}
	var found []entry
	for _, e := range entries {
		if idx.IsImagesName(path.Base(e.relative)) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 0:
		return entry{}, entry{}, fmt.Errorf("data %q holds no images in MNIST's format under a usual name (train-images-idx3-ubyte, with or without .gz)", root)
	case 1:
		return pairOf(found[0], entries)
	default:
		return entry{}, entry{}, fmt.Errorf("data %q holds more than one file of images (%s, %s); say which by giving the file instead of the directory", root, found[0].relative, found[1].relative)
	}
}

func pairOf(images entry, among []entry) (entry, entry, error) {
	dir, name := path.Split(images.relative)
	names := idx.LabelsNames(name)
	for _, labels := range names {
		for _, e := range among {
			if e.relative == dir+labels {
				return images, e, nil
			}
		}
	}
	if len(names) == 0 {
		return entry{}, entry{}, fmt.Errorf("data %q: a file of images in MNIST's format is named like train-images-idx3-ubyte, with or without .gz, so that its labels can be found", images.absolute)
	}
	return entry{}, entry{}, fmt.Errorf("data %q: its labels are not beside it; looked for %s", images.absolute, strings.Join(names, " and "))
}
