package trainingjob

import "strings"

// ImageRepository is where the trainer's image is published, without a tag.
const ImageRepository = "ghcr.io/elastic-training/" + trainerImageName

// The last parts of the repositories of the trainer's image, wherever it is mirrored, and of ElasticDL's.
const (
	trainerImageName = "elastic-trainer"
	elasticdlImage   = "elasticdl"
)

// DefaultImage is the trainer's image of a release of the provider or of elastic-trainer.
func DefaultImage(version string) string { return ImageRepository + ":" + version }

// IsTrainerImage reports whether an image is the trainer's by its name: that of any registry, with any tag.
func IsTrainerImage(image string) bool { return imageName(image) == trainerImageName }

// imageName is the last part of an image's repository: elasticdl of gcr.io/project/elasticdl:dev@sha256:….
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	return name
}

// image warns about an image that cannot run the job's pods, and about records that the image does not have.
func (p *problems) image(d Definition) {
	if imageName(d.Image) == elasticdlImage {
		p.add("image", "is %q, by its name an image of ElasticDL: the job's pods run elastic-trainer, which that does not contain; name the trainer's image, such as %s:VERSION", d.Image, ImageRepository)
	}
	if !IsTrainerImage(d.Image) {
		return
	}
	for _, data := range [][2]string{{"data.training", d.Job.Data.Training}, {"data.validation", d.Job.Data.Validation}} {
		field, source := data[0], data[1]
		for _, pods := range []struct {
			role, who string
			settings  PodSettings
		}{{RoleMaster, "the master mounts", d.Master}, {RoleWorker, "the workers mount", d.Workers}} {
			if strings.HasPrefix(source, "/") && len(pods.settings.PodOverrides) == 0 && !mounted(source, pods.role, d.Volumes) {
				p.add(field, "is %q, in no volume that %s, and the trainer's image contains no records; add a volume with them, as volumes = [{ name = \"data\", mount_path = %q, claim_name = \"…\" }] does", source, pods.who, TopFolder(source))
				break // the remedy is one
			}
		}
	}
}

// mounted reports whether the pods of a role mount a volume that a path is in.
func mounted(file, role string, volumes []Volume) bool {
	for _, v := range volumes {
		if v.mountedBy(role) && within(file, v.MountPath) {
			return true
		}
	}
	return false
}

// TopFolder is the first folder of an absolute path: /data of /data/mnist/train.
func TopFolder(file string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(file, "/"), "/")
	return "/" + first
}
