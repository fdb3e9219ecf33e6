package elasticdl

import (
	"slices"
	"strings"
	"testing"
)

func TestFlagsWithoutAMeaningHereAreReportedWithTheirReplacement(t *testing.T) {
	const trainer = "ghcr.io/elastic-training/elastic-trainer:1.2.3"
	volume := " --volume_name=records --mount_path=/mnist"
	for name, c := range map[string]struct {
		line    string
		want    Translation
		notices []string
	}{
		"the tutorial's command": {
			tutorialLow,
			Translation{Image: trainer, VolumeName: "data", MountPath: "/data"},
			[]string{"--image_base=gcr.io/elasticdl/elasticdl:dev is replaced by image " + trainer, "--repository=gcr.io has no effect", "--train_data_dir=/data/mnist/train is read from PersistentVolumeClaim fileserver-claim, mounted at /data"},
		},
		"a volume of the command line": {
			strings.ReplaceAll(tutorialLow, "--repository=gcr.io", volume),
			Translation{Image: trainer, VolumeName: "records", MountPath: "/mnist"},
			[]string{"--image_base="},
		},
		"a trainer's image of another registry": {
			smallest + volume + " --image_base=localhost:5000/team/elastic-trainer@sha256:0123",
			Translation{Image: "localhost:5000/team/elastic-trainer@sha256:0123", VolumeName: "records", MountPath: "/mnist"},
			nil,
		},
		"data without a path": {
			smallest + " --image_base=elastic-trainer --train_data_dir=synthetic://digits --docker_image_repository=r",
			Translation{Image: "elastic-trainer"},
			[]string{"--docker_image_repository=r has no effect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := Parse(c.line)
			if err != nil {
				t.Fatal(err)
			}
			got := a.Translate(trainer, Claim)
			if got.Image != c.want.Image || got.VolumeName != c.want.VolumeName || got.MountPath != c.want.MountPath {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if !slices.EqualFunc(got.Notices, c.notices, strings.Contains) {
				t.Errorf("the notices are %q, want %q", got.Notices, c.notices)
			}
		})
	}
}
