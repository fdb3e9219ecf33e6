// Package crd contains Kueue's CustomResourceDefinitions, for clusters without Kueue and for what their rules say. They
// are Kueue's own, of the kinds that this project reads and in the one version v1beta2, and without what makes them ten
// times as large: texts for people, and the schema of pods in Workloads. A test compares them with the module.
package crd

import (
	"embed"
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Objects are the CustomResourceDefinitions, new ones at each call. They are established, and can be used, a moment after
// they were created. An error means that the program was built with a damaged file.
func Objects() ([]*unstructured.Unstructured, error) {
	return Read(files)
}

// Read reads the CustomResourceDefinitions in the YAML files at the top of a file system, such as Kueue's own in
// config/components/crd/bases of its repository.
func Read(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &object.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			objects = append(objects, object)
		}
	}
	return objects, nil
}
