package elasticdl

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/elastic-training/terraform-provider-elastic/internal/spelling"
)

// required are the flags without a default. --num_worker has one, which is no job for Kubernetes.
var required = []string{
	"job_name", "model_file", "image_base", "train_data_dir", "record_per_task", "num_epoch", "grads_to_wait", "minibatch_size",
}

// flag takes a value over, or says what is wrong with it.
type flag func(value string) error

// flagsOf are all flags of the client and of the master, by name, writing into a.
func flagsOf(a *Arguments) map[string]flag {
	flags := map[string]flag{
		"job_name":        text(&a.Name),
		"model_file":      text(&a.ModelFile),
		"image_base":      text(&a.Image),
		"train_data_dir":  text(&a.TrainingData),
		"record_per_task": count(&a.RecordsPerTask),
		"num_epoch":       count(&a.Epochs),
		"minibatch_size":  count(&a.MinibatchSize),
		"grads_to_wait":   count(&a.GradsToWait),
		"num_worker":      count(&a.Workers),
		"codec_type":      oneOf(&a.Codec, "bytes", "tf_example"),
		"volume_name":     text(&a.VolumeName),
		"mount_path":      text(&a.MountPath),
		"worker_image": func(string) error {
			return errors.New("the client sets this flag itself; master and workers run the image of --image_base")
		},
	}
	for _, name := range []string{"repository", "docker_image_repository"} { // the second is of a later version
		flags[name] = func(value string) error {
			a.Pushed = ""
			if value != "" {
				a.Pushed = "--" + name + "=" + value
			}
			return nil
		}
	}
	for role, pod := range map[string]*Pod{"master": &a.Master, "worker": &a.Worker} {
		flags[role+"_pod_priority"] = text(&pod.PriorityClass)
		flags[role+"_cpu_request"] = cpu(&pod.CPURequest)
		flags[role+"_cpu_limit"] = cpu(&pod.CPULimit)
		flags[role+"_memory_request"] = memory(&pod.MemoryRequest)
		flags[role+"_memory_limit"] = memory(&pod.MemoryLimit)
	}
	return flags
}

func text(to *string) flag {
	return func(value string) error {
		if value == "" {
			return errors.New("give it a value, or leave the flag out")
		}
		*to = value
		return nil
	}
}

func oneOf(to *string, choices ...string) flag {
	return func(value string) error {
		if !slices.Contains(choices, value) {
			return fmt.Errorf("choose from %s", strings.Join(choices, ", "))
		}
		*to = value
		return nil
	}
}

func count(to *int64) flag {
	return func(value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return errors.New("write a whole number of at least 1")
		}
		*to = n
		return nil
	}
}

// The client's own rules for amounts.
var (
	cpuRule    = regexp.MustCompile(`^[1-9][0-9]*m$`)
	memoryRule = regexp.MustCompile(`^[1-9][0-9]*(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$`)
)

func cpu(to *string) flag {
	return func(value string) error {
		if cpuRule.MatchString(value) {
			*to = value
			return nil
		}
		if amount, err := resource.ParseQuantity(value); err == nil && amount.MilliValue() > 0 {
			return fmt.Errorf("the client takes thousandths of a CPU, and no zero: write %dm", amount.MilliValue())
		}
		return errors.New("the client takes thousandths of a CPU, and no zero: write 1000m for one CPU")
	}
}

func memory(to *string) flag {
	return func(value string) error {
		if !memoryRule.MatchString(value) {
			return errors.New("the client takes a whole number with one of E P T G M K Ei Pi Ti Gi Mi Ki after it: write 1024Mi for a gibibyte")
		}
		if number, isThousands := strings.CutSuffix(value, "K"); isThousands {
			return fmt.Errorf("the client takes it, but Kubernetes refuses the pod: write %sKi, or millions as M", number)
		}
		*to = value
		return nil
	}
}

// later are flags of later ElasticDL releases, whose names are far from the tutorial's.
var later = map[string]string{
	"training_data_dir": "train_data_dir", "training_data": "train_data_dir", "model_def": "model_file", "model_zoo": "model_file",
	"image_name": "image_base", "push_image": "repository", "volume": "volume_name",
	"master_resource_request": "master_cpu_request", "master_resource_limit": "master_cpu_limit",
	"worker_resource_request": "worker_cpu_request", "worker_resource_limit": "worker_cpu_limit",
}

// unknown names the flag that was probably meant.
func unknown(name string, flags map[string]flag) error {
	if meant, renamed := later[name]; renamed {
		return fmt.Errorf("--%s is unknown: the client of the tutorial has --%s in its place", name, meant)
	}
	if meant := spelling.Meant(name, slices.Sorted(maps.Keys(flags))); meant != "" {
		return fmt.Errorf("--%s is unknown; did you mean --%s?", name, meant)
	}
	return fmt.Errorf("--%s is unknown to the tutorial's client; leave it out", name)
}
