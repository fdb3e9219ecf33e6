package elasticdl

import (
	"cmp"
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
		flags[role+"_pod_priority"] = class(&pod.PriorityClass)
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

// shareRule is a share of the workers that a later version gave a high priority.
var shareRule = regexp.MustCompile(`^(high=)?[0-9]*\.[0-9]+$`)

// CheckClass refuses a share of the workers as the name of a PriorityClass.
func CheckClass(value string) error {
	if shareRule.MatchString(value) {
		return errors.New("a share of the workers is of a later version: set workers.min with workers.min_priority_class_name of elastic_training_job")
	}
	return nil
}

func class(to *string) flag {
	return func(value string) error { return cmp.Or(CheckClass(value), text(to)(value)) }
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

// renamed are the later names of flags. They are read as the first client's.
var renamed = map[string]string{
	"num_workers": "num_worker", "num_epochs": "num_epoch", "records_per_task": "record_per_task", "training_data_dir": "train_data_dir",
	"training_data": "train_data_dir", "image_name": "image_base",
}

// later is what stands for the flags of later versions here, as the guide says. A name that ends with _ is a prefix.
var later = byFlag(map[string]string{
	"push_image":               "leave it out: no image is built for a job",
	"num_minibatches_per_task": "set data.records_per_task to that times the minibatch size",
	"model_zoo model_def feed loss optimizer eval_metrics_fn custom_data_reader": "give the file's text by model.content, or a built-in model by model.name",
	"master_resource_":                                    "set master.resources",
	"worker_resource_":                                    "set workers.resources",
	"validation_data evaluation_steps":                    "set data.validation, and the intervals by evaluation",
	"checkpoint_dir checkpoint_steps keep_checkpoint_max": "set checkpoint.directory, checkpoint.interval_steps and checkpoint.max_to_keep",
	"checkpoint_dir_for_init":                             "keep the same output: a job resumes from the newest checkpoint there",
	"output":                                              "set output",
	"prediction_data prediction_outputs_processor":        "use elastic-trainer predict",
	"volume":                "set volumes",
	"envs":                  "set master.env and workers.env",
	"namespace":             "set namespace",
	"image_pull_policy":     "set image_pull_policy",
	"distribution_strategy": "set training.aggregation; there are no parameter servers",
	"use_async lr_staleness_modulation sync_version_tolerance get_model_steps": "leave it out: training is synchronous",
	"num_ps_pods ps_": "leave it out: there is no parameter server",
	"relaunch_on_worker_failure relaunch_timeout_worker restart_policy task_fault_tolerance": "leave it out: lost workers are always replaced",
	"log_level log_loss_steps":     "leave it out: see the status, Events, metrics and page of the job",
	"cluster_spec yaml aux_params": "set pod_overrides of master and workers",
	"need_tf_config job_command":   "set workers.command",
})

// byFlag are texts by each of the flags that their keys name.
func byFlag(texts map[string]string) map[string]string {
	all := map[string]string{}
	for names, text := range texts {
		for name := range strings.FieldsSeq(names) {
			all[name] = text
		}
	}
	return all
}

// Later is what takes the place of a flag of later versions: a flag of the first client, or what is to be done with
// elastic_training_job, in the imperative. Both are empty for other flags.
func Later(name string) (first, here string) {
	here, _ = ofLater(name)
	return renamed[name], here
}

// ofLater is what stands for a flag of later versions.
func ofLater(name string) (here string, known bool) {
	if here, known = later[name]; known {
		return here, true
	}
	for prefix, here := range later {
		if strings.HasSuffix(prefix, "_") && strings.HasPrefix(name, prefix) {
			return here, true
		}
	}
	return "", false
}

// unknown names the flag that was probably meant.
func unknown(name string, flags map[string]flag) error {
	if here, known := ofLater(name); known {
		return fmt.Errorf("--%s is of a later version: %s", name, here)
	}
	if meant := spelling.Meant(name, slices.Sorted(maps.Keys(flags))); meant != "" {
		return fmt.Errorf("--%s is unknown; did you mean --%s?", name, meant)
	}
	return fmt.Errorf("--%s is unknown to the tutorial's client; leave it out", name)
}
