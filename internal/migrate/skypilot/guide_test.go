package skypilot

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What a row of the guide says becomes of a key.
const (
	isTaken   = "taken over"
	isRefused = "rejected"
	isIgnored = "no effect"
)

// keysOf are the reader's tables of keys, by the path of the key whose value they are of.
func keysOf() map[string]map[string]handler {
	return map[string]map[string]handler{
		"":                            topKeys(),
		"resources.":                  resourceKeys(),
		"resources.accelerator_args.": acceleratorArgsKeys(),
		"resources.job_recovery.":     recoveryKeys(),
		"config.":                     configKeys(),
		"config.kubernetes.":          kubernetesKeys(),
		"config.kubernetes.kueue.":    kueueKeys(),
		"config.kubernetes.quota.":    quotaKeys(),
	}
}

// samples are values that a key takes, where a word is none.
func samples() map[string]string {
	return map[string]string{
		"num_nodes": "2", "envs": "{A: b}", "secrets": "{A: }", "volumes": "{/data: claim}", "resources": "{}", "config": "{}",
		"resources.use_spot": "true", "resources.image_id": "docker:debian", "resources.cloud": "k8s", "resources.infra": "k8s",
		"resources.cpus": "4", "resources.memory": "32", "resources.accelerators": "T4:4", "resources.labels": "{team: vision}",
		"resources.any_of": "[{accelerators: T4}]", "resources.ordered": "[{accelerators: T4}]", "resources.accelerator_args": "{}",
		"resources.job_recovery": "{max_restarts_on_errors: 3}", "resources.job_recovery.max_restarts_on_errors": "3",
		"resources.job_recovery.recover_on_exit_codes": "[3]", "config.kubernetes": "{}", "config.kubernetes.kueue": "{}",
		"config.kubernetes.quota": "{}", "config.kubernetes.pod_config": "{spec: {runtimeClassName: nvidia}}",
	}
}

// outcome is what the reader makes of a key, alone in a file with a value that it may have.
func outcome(t *testing.T, key string) string {
	t.Helper()
	value, given := samples()[key]
	if !given {
		value = "word"
	}
	parts := strings.Split(key, ".")
	text := value
	for _, part := range slices.Backward(parts) {
		text = "{" + part + ": " + text + "}"
	}
	_, warnings, err := Parse("x.yaml", []byte(text), Given{AnySecret: true})
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "x.yaml:1: "+key+" "):
		return isRefused
	case err != nil:
		t.Fatalf("%s: %v", text, err)
	case len(warnings) > 0 && strings.Contains(warnings[0].Message, key+" has no effect"):
		return isIgnored
	}
	return isTaken
}

var code = regexp.MustCompile("`([^`]+)`")

// The guide "Moving from SkyPilot YAML" has a table of all keys, and says of each what the reader does with it.
func TestTheGuideHasEveryKeyThatTheReaderKnowsAndNoOther(t *testing.T) {
	const guide = "../../../templates/guides/moving-from-skypilot.md"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for path, keys := range keysOf() {
		for key := range keys {
			known[path+key] = true
		}
	}
	inTable, rows := false, map[string]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		inTable = strings.HasPrefix(line, "|") && (inTable || strings.TrimSpace(cells[0]) == "key")
		if !inTable || len(cells) < 2 {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(cells[0], -1) {
			key, becomes := match[1], isTaken
			for _, word := range []string{isRefused, isIgnored} {
				if strings.HasPrefix(strings.TrimSpace(cells[1]), word) {
					becomes = word
				}
			}
			if rows[key] != "" {
				t.Errorf("%s is there twice", key)
			}
			rows[key] = becomes
		}
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		switch is := outcome(t, key); rows[key] {
		case is:
		case "":
			t.Errorf("%s is missing", key)
		default:
			t.Errorf("%s is %s, and the guide says %s", key, is, rows[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		if !known[key] {
			t.Errorf("the reader does not know %s", key)
		}
	}
}
