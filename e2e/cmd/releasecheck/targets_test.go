package main

import (
	"os"
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
