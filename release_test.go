package main

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestAReleaseIsBuiltWithTheFlagsOfTheTestsAndComparedAsAWhole(t *testing.T) {
	var config struct {
		Builds []struct {
			ID, Main                          string
			Env, Flags, LDFlags, Goos, Goarch []string
		}
	}
	goreleaser, err := os.ReadFile(".goreleaser.yml")
	makefile, missing := os.ReadFile("GNUmakefile")
	if err := errors.Join(err, missing, yaml.Unmarshal(goreleaser, &config)); err != nil {
		t.Fatal(err)
	}
	_, flags, _ := strings.Cut(string(makefile), "export GOFLAGS := ")
	flags, _, _ = strings.Cut(flags, "\n")
	var want []string
	for _, b := range config.Builds {
		if strings.Join(b.Flags, " ") != flags || !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) || !slices.Equal(b.LDFlags, []string{"-s -w -X main.version={{ .Version }}"}) {
			t.Errorf("%s: flags %q, environment %q, ldflags %q; make has %q", b.ID, b.Flags, b.Env, b.LDFlags, flags)
		}
		for _, system := range b.Goos {
			for _, processor := range b.Goarch {
				want = append(want, strings.Join([]string{b.ID, b.Main, system, processor}, " "))
			}
		}
	}
	listed, err := exec.CommandContext(t.Context(), "tools/release-check.sh", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(string(listed)), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("release-check builds %q, .goreleaser.yml %q", got, want)
	}
}
