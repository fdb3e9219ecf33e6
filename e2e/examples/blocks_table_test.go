package examples_test

// documentBlock defines how a block of HCL in a document is applied.
type documentBlock struct {
	example

	// beside is configuration that the block refers to and the document does not show.
	beside string
	// besideBecause is why the document leaves it out.
	besideBecause string
}

const (
	byCommandLines = "needs Terraform 1.14: make test-clis queries, imports and acts with it"
	attributesOnly = "attributes of a resource that the document speaks of, and no configuration of its own"
	leavesOut      = "leaves lines out; TestTheTutorialsShowTheExamplesOwnLines finds the others in the example, which is applied"
	aProvider      = "a provider's configuration for a cluster that is not here; its attributes are checked by e2e/documents"

	shownBefore = "the document shows it before, or names the example that has it"

	aT4 = `
resource "elastic_resource_flavor" "t4" {
  name = "t4-of-a-document"
}
`
)

func notApplied(why string) documentBlock { return documentBlock{example: example{notApplied: why}} }

// blockTable has every block of HCL of every document.
var blockTable = map[string]documentBlock{
	`README.md: terraform`: {example: example{files: map[string]string{"loop.py": "examples/pytorch/loop.py"}}},
	`templates/guides/elastic-jobs-under-kueue.md: workers =`: notApplied(attributesOnly),
	`templates/guides/elastic-jobs-under-kueue.md: resource "elastic_cluster_queue" "training"`: {
		beside: "resource \"elastic_resource_flavor\" \"any\" {\n  name = \"any-of-a-document\"\n}\n", besideBecause: shownBefore,
	},
	`templates/guides/elastic-jobs-under-kueue.md: data "elastic_workloads" "all" {}`: {},

	`templates/guides/elastic-scheduling.md: resource "elastic_priority_class" "high"`: {},
	`templates/guides/elastic-scheduling.md: resource "elastic_training_job" "low"`:    notApplied(leavesOut),

	`templates/guides/moving-from-elasticdl.md: locals`: notApplied("the script is the reader's own; the function's example is applied"),

	`templates/guides/moving-from-skypilot.md: resource "elastic_task" "low"`: {
		beside: `
resource "elastic_local_queue" "user_queue" {
  name          = "user-queue"
  namespace     = "team-a"
  cluster_queue = "research"
}
resource "elastic_workload_priority_class" "low" {
  name  = "low-priority"
  value = 100
}
`, besideBecause: "they are in the example of the resource",
		example: example{
			before: t4Queue, beforeBecause: "quota is an administrator's", asRoot: skyPilot,
			files: map[string]string{"low.yaml": "examples/resources/elastic_task/low.yaml"},
		},
	},
	`templates/guides/moving-from-skypilot.md: resource "elastic_task" "low" (2)`: {
		beside: "locals {\n  low = provider::elastic::skypilot_task(file(\"low.yaml\"))\n}\n", besideBecause: "it is in the function's example",
		example: example{
			before: nightQueue, beforeBecause: theTeams, asRoot: skyPilot,
			files: map[string]string{"low.yaml": "examples/resources/elastic_task/low.yaml"},
		},
	},
	`templates/guides/moving-from-skypilot.md: resource "elastic_task" "npu"`:                                                       {example: example{asRoot: skyPilot}},
	`templates/guides/moving-from-skypilot.md: num_nodes = 4`:                                                                       notApplied(attributesOnly),
	`templates/guides/moving-from-skypilot.md: secrets            = { HF_TOKEN = { secret_name = "hugging-face", key = "token" } }`: notApplied(attributesOnly),

	`templates/guides/names-limits-and-pods.md: resource "elastic_training_job" "rate"`: {},

	`templates/guides/pytorch.md: resource "elastic_training_job" "ddp"`: {},
	`templates/guides/pytorch.md: resource "elastic_training_job" "loop"`: {
		example: example{files: map[string]string{"loop.py": "examples/pytorch/loop.py"}},
	},
	`templates/guides/pytorch.md: resource "elastic_training_job" "pytorch"`: {
		example: example{files: map[string]string{"mnist.py": "examples/pytorch/mnist.py"}},
	},

	`templates/guides/queue-priorities.md: resource "elastic_cluster_queue" "team"`: {beside: aT4, besideBecause: shownBefore},
	`templates/guides/queue-priorities.md: resource "elastic_local_queue" "user"`: {
		beside: `
variable "namespace" {}
resource "elastic_cluster_queue" "team" {
  name               = "team"
  namespace_selector = {}
}
`, besideBecause: shownBefore,
		example: example{variables: map[string]string{"namespace": "default"}},
	},
	`templates/guides/queue-priorities.md: resource "elastic_task" "low"`: notApplied(leavesOut),

	`templates/guides/racks-and-blocks.md: resource "elastic_topology" "datacenter"`: notApplied("the example racks-and-blocks has it, and is applied"),

	`templates/guides/running-on-gke.md: provider "elastic"`:     notApplied(aProvider),
	`templates/guides/running-on-gke.md: provider "elastic" (2)`: notApplied(aProvider),
	`templates/guides/running-on-gke.md: resource "elastic_resource_flavor" "spot"`: {
		beside: "variable \"spot_pool\" {}\n", besideBecause: "the pool is Terraform's of another provider",
		example: example{variables: map[string]string{"spot_pool": "spot"}},
	},
	`templates/guides/running-on-gke.md: master =`: notApplied(attributesOnly),

	`templates/guides/terraform-and-opentofu.md: list "elastic_cluster_queue" "all"`:               notApplied(byCommandLines),
	`templates/guides/terraform-and-opentofu.md: resource "elastic_local_queue" "research_0"`:      notApplied(byCommandLines),
	`templates/guides/terraform-and-opentofu.md: action "elastic_job_checkpoint" "before_upgrade"`: notApplied(byCommandLines),

	`templates/guides/upgrading.md: terraform`: notApplied("the version of the provider, which is not in a registry here"),

	`templates/guides/watching-a-job.md: master =`: notApplied(attributesOnly),

	`templates/guides/will-my-job-preempt-anyone.md: provider "elastic"`: {
		beside: "variable \"config_path\" {}\n", besideBecause: "where the kubeconfig is differs",
		example: example{variables: map[string]string{"config_path": ""}},
	},
	`templates/guides/will-my-job-preempt-anyone.md: provider "elastic" (2)`: notApplied("the example forecast-gate has this attribute, and is applied"),

	`templates/guides/will-my-job-preempt-anyone.md: data "elastic_forecast" "urgent"`: {
		example: example{before: classes, beforeBecause: ofUser},
	},

	`examples/modules/team-queue/README.md: module "research"`: notApplied("the module is fetched from GitHub; the example of the module is applied from its folder"),
}
