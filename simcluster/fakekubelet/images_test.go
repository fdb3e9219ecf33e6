package fakekubelet

import (
	"slices"
	"strings"
	"testing"
)

func TestTagAndDigestAreNoPartOfAnImagesRepository(t *testing.T) {
	for image, want := range map[string]string{
		"elastic-trainer":                      "elastic-trainer",
		"elastic-trainer:v1":                   "elastic-trainer",
		"localhost:5000/a/b":                   "localhost:5000/a/b",
		"localhost:5000/a/b:v1":                "localhost:5000/a/b",
		"ghcr.io/x/y:v1@sha256:0123456789abcd": "ghcr.io/x/y",
		"ghcr.io/x/y@sha256:0123456789abcd":    "ghcr.io/x/y",
	} {
		if got := imageRepository(image); got != want {
			t.Errorf("imageRepository(%q) = %q, want %q", image, got, want)
		}
	}
}

func TestResolveImage(t *testing.T) {
	table := map[string]string{"trainer": "/bin/trainer", "ghcr.io/other/trainer": "/bin/other", "shell": "host"}
	t.Run("the last path element is enough", func(t *testing.T) {
		if got, err := resolveImage(table, "ghcr.io/x/trainer:v1"); err != nil || got.path != "/bin/trainer" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("the whole repository wins over its last element", func(t *testing.T) {
		if got, err := resolveImage(table, "ghcr.io/other/trainer:v1"); err != nil || got.path != "/bin/other" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("a single image may be the host's", func(t *testing.T) {
		if got, err := resolveImage(table, "shell"); err != nil || !got.host {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("an unknown image is refused with the remedy", func(t *testing.T) {
		_, err := resolveImage(table, "ghcr.io/x/unknown:v1")
		if err == nil || !strings.Contains(err.Error(), "--image unknown=PATH") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the star stands for every other image", func(t *testing.T) {
		if got, err := resolveImage(map[string]string{"*": "host"}, "anything"); err != nil || !got.host {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestCommandLine(t *testing.T) {
	program, host := executable{path: "/opt/bin/trainer-linux"}, executable{host: true}
	for name, c := range map[string]struct {
		program       executable
		command, args []string
		want          []string // nil: an error
	}{
		"arguments alone go to the image's program":   {program, nil, []string{"master"}, []string{"/opt/bin/trainer-linux", "master"}},
		"a command may call the program by the image": {program, []string{"/usr/bin/trainer", "a"}, []string{"b"}, []string{"/opt/bin/trainer-linux", "a", "b"}},
		"a command may call the program by its file":  {program, []string{"trainer-linux"}, nil, []string{"/opt/bin/trainer-linux"}},
		"an image has no other programs":              {program, []string{"sh", "-c", "true"}, nil, nil},
		"the host has its programs":                   {host, []string{"sh", "-c"}, []string{"true"}, []string{"sh", "-c", "true"}},
		"the host has no entrypoint":                  {host, nil, []string{"x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := commandLine("ghcr.io/x/trainer:v1", c.program, c.command, c.args)
			if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
