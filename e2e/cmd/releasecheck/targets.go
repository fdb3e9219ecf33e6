package main

import (
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// target is one binary for one platform.
type target struct {
	id, main          string
	system, processor string
	env, flags        []string
	ldflags           string
}

func (t target) name() string { return t.id + " " + t.system + "/" + t.processor }

// parse reads the builds of goreleaser's configuration. Of its templates it knows the version's; another one is
// refused, as what is built would not be what goreleaser builds.
func parse(text []byte, version string) ([]target, error) {
	var config struct {
		Builds []struct {
			ID, Main     string
			Env, Flags   []string
			LDFlags      []string `json:"ldflags"`
			Goos, Goarch []string
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf(".goreleaser.yml: %w", err)
	}
	var targets []target
	for _, b := range config.Builds {
		ldflags := strings.ReplaceAll(strings.Join(b.LDFlags, " "), "{{ .Version }}", version)
		if all := strings.Join(b.Flags, " ") + strings.Join(b.Env, " ") + ldflags; strings.Contains(all, "{{") {
			return nil, fmt.Errorf(".goreleaser.yml: build %q has a template other than {{ .Version }}: %s", b.ID, all)
		}
		for _, system := range b.Goos {
			for _, processor := range b.Goarch {
				targets = append(targets, target{id: b.ID, main: b.Main, system: system, processor: processor, env: b.Env, flags: b.Flags, ldflags: ldflags})
			}
		}
	}
	if len(targets) == 0 {
		return nil, errors.New(".goreleaser.yml builds nothing")
	}
	return targets, nil
}
