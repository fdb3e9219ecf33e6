package fakekubelet

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Keys and values of nodeagent.Config.Images with a meaning of their own.
const (
	anyImage  = "*"    // a key: every image not named otherwise
	hostImage = "host" // a value: the container's command is one of the host's programs
)

// An executable is what an image name stands for.
type executable struct {
	path string // absolute; "" where the host's programs are the image
	host bool
}

// resolveImage looks an image up in the table: as it is first, then its full
// repository, then the repository's last path element, then "*".
func resolveImage(table map[string]string, image string) (executable, error) {
	repository := imageRepository(image)
	for _, key := range []string{image, repository, path.Base(repository), anyImage} {
		switch value, ok := table[key]; {
		case !ok || value == "":
		case value == hostImage:
			return executable{host: true}, nil
		default:
			absolute, err := filepath.Abs(value)
			if err != nil {
				return executable{}, fmt.Errorf("image %q: executable %q: %w", image, value, err)
			}
			return executable{path: absolute}, nil
		}
	}
	return executable{}, fmt.Errorf("image %q stands for no program on this simulated node; start the cluster with --image %s=PATH to an executable, or with --image '*'=host to let the host run any image's command",
		image, path.Base(repository))
}

// imageRepository is image without tag and digest: "registry:5000/a/b:v1@sha256:…"
// gives "registry:5000/a/b".
func imageRepository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndexByte(image, '/')
	if colon := strings.LastIndexByte(image, ':'); colon > slash {
		image = image[:colon]
	}
	return image
}

// commandLine is what a container runs. An image that stands for an executable
// holds that program and nothing else, like an image built from scratch: its
// entrypoint is the program, and a command must call it by the image's or the
// executable's base name (in any directory). The host as an image has every
// program of its PATH and no entrypoint.
//
// The first element is an absolute path or a name to be looked up on the PATH.
func commandLine(image string, program executable, command, args []string) ([]string, error) {
	if program.host {
		if len(command) == 0 {
			return nil, fmt.Errorf("image %q is run by the host, which knows no entrypoint for it: give the container a command", image)
		}
		return slices.Concat(command, args), nil
	}
	if len(command) == 0 {
		return slices.Concat([]string{program.path}, args), nil
	}
	name := path.Base(command[0])
	if name != path.Base(imageRepository(image)) && name != filepath.Base(program.path) {
		return nil, fmt.Errorf("exec: %q: executable file not found in $PATH: image %q holds %q only; to run the host's programs start the cluster with --image %s=host",
			command[0], image, filepath.Base(program.path), path.Base(imageRepository(image)))
	}
	return slices.Concat([]string{program.path}, command[1:], args), nil
}

// pullPolicyNever reports whether the container forbids pulling, which changes
// the reason that a missing image is reported with.
func pullPolicyNever(c *corev1.Container) bool { return c.ImagePullPolicy == corev1.PullNever }
