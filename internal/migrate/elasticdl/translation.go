package elasticdl

import (
	"fmt"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// dataVolume is the name of the volume with the records where the command line names none.
const dataVolume = "data"

// Translation is what takes the place of the flags that cannot have the meaning that they had.
type Translation struct {
	Image      string // of master and workers
	VolumeName string // "" for no volume
	MountPath  string
	Notices    []string // what differs from the command line, in a sentence for each flag
}

// Translate replaces the image of ElasticDL, which built one for each job, by the trainer's, which runs every job; an
// --image_base that names a trainer's image of any registry is kept. The image of a job contained its records, and the
// trainer's contains none: where the command line names no volume, they are therefore expected in the
// PersistentVolumeClaim claim, unless that is "".
func (a Arguments) Translate(trainerImage, claim string) Translation {
	t := Translation{Image: trainerImage}
	switch {
	case trainingjob.IsTrainerImage(a.Image):
		t.Image = a.Image
	case a.Image != "":
		t.Notices = append(t.Notices, fmt.Sprintf(
			"--image_base=%s is replaced by image %s: the trainer's image runs every job, and none is built for a job", a.Image, trainerImage))
	}
	if a.Pushed != "" {
		t.Notices = append(t.Notices, a.Pushed+" has no effect: no image is built for a job, so that none is pushed")
	}
	switch {
	case claim == "":
	case a.VolumeName != "":
		t.VolumeName, t.MountPath = a.VolumeName, a.MountPath
	case strings.HasPrefix(a.TrainingData, "/") && trainingjob.IsTrainerImage(t.Image):
		t.VolumeName, t.MountPath = dataVolume, trainingjob.TopFolder(a.TrainingData)
		t.Notices = append(t.Notices, fmt.Sprintf("--train_data_dir=%s is read from PersistentVolumeClaim %s, mounted at %s: ElasticDL's image contained the records, the trainer's does not; "+
			"--volume_name and --mount_path choose another place", a.TrainingData, claim, t.MountPath))
	}
	return t
}
