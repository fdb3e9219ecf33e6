package idx

import (
	"slices"
	"strings"
)

// LabelsNames are the names under which the labels of an images file are looked for, the likeliest first: "images"
// becomes "labels" and "idx3" (or "idx4") becomes "idx1", with the same or the other compression. No names: the file is
// not named like images.
func LabelsNames(images string) []string {
	if !IsImagesName(images) {
		return nil
	}
	at := strings.LastIndex(images, "images")
	labels := images[:at] + "labels" + images[at+len("images"):]
	labels = strings.NewReplacer("idx3", "idx1", "idx4", "idx1").Replace(labels)
	other := labels + ".gz"
	if IsCompressed(labels) {
		other = strings.TrimSuffix(labels, ".gz")
	}
	return []string{labels, other}
}

// IsImagesName recognizes train-images-idx3-ubyte, t10k-images.idx3-ubyte.gz and their like; name has no directory.
func IsImagesName(name string) bool {
	name = strings.TrimSuffix(name, ".gz")
	return slices.ContainsFunc([]string{"-idx3-ubyte", ".idx3-ubyte", "-idx4-ubyte", ".idx4-ubyte"}, func(end string) bool {
		return strings.HasSuffix(name, "images"+end)
	})
}
