package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTheModulesRequireTheSameVersions holds simcluster/go.mod and e2e/go.mod to go.mod. Where a version differs, every
// package that imports the module is compiled once for each version: with two versions of golang.org/x/net, that was a
// quarter of the provider's packages.
func TestTheModulesRequireTheSameVersions(t *testing.T) {
	provider := requiredVersions(t, ".")
	for _, module := range []string{"simcluster", "e2e"} {
		shared := 0
		for path, version := range requiredVersions(t, module) {
			want, is := provider[path]
			if !is {
				continue
			}
			shared++
			if version != want {
				t.Errorf("%s/go.mod requires %s %s, go.mod %s: raise the lower one", module, path, version, want)
			}
		}
		if shared < 20 {
			t.Errorf("%s/go.mod shares only %d modules with go.mod", module, shared)
		}
	}
}

// requiredVersions are the versions in the go.mod file of the module in dir, by module.
func requiredVersions(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, match := range regexp.MustCompile(`(?m)^\t([^ \n]+) (v[^ \n]+)`).FindAllStringSubmatch(string(text), -1) {
		versions[match[1]] = match[2]
	}
	return versions
}
