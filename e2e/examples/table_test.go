package examples_test

// example defines how an example is applied.
type example struct {
	// notApplied is why it is not applied here; then the rest is empty.
	notApplied string

	// before is a configuration that is applied first: what the example expects in a cluster. Namespaces are there.
	before string
	// beforeBecause is why the example does not make it itself.
	beforeBecause string
	// variables are values of the example's variables that have no default, or none for this cluster.
	variables map[string]string
	// with are further folders of examples/ that the example reads; its comments or its README name them.
	with []string
	// without are files that are left out, with the reason.
	without map[string]string
	// files are those that the example expects beside itself, by their places in the repository; its text names them.
	files map[string]string
	// asRoot is why its pods need a namespace that enforces baseline; the pods of all others are admitted by restricted.
	asRoot string
}

const (
	newer    = "needs Terraform 1.14; its schema is checked by TestEveryActionAndListResourceHasAnExampleThatIsValid"
	ofUser   = "the names are of objects that others manage"
	theTeams = "a namespace's queue is made by who manages it"

	skyPilot = "a SkyPilot file does not say as which user its commands run, and those of its users' images are root's"

	classes = `
resource "elastic_priority_class" "low" {
  name  = "low-priority"
  value = 100
}
resource "elastic_priority_class" "high" {
  name  = "high-priority"
  value = 1000
}
`
	nightQueue = `
resource "elastic_workload_priority_class" "low" {
  name  = "low-priority"
  value = 100
}
resource "elastic_cluster_queue" "night" {
  name               = "night"
  namespace_selector = {}
}
resource "elastic_local_queue" "night" {
  name          = "night-queue"
  namespace     = "default"
  cluster_queue = elastic_cluster_queue.night.name
}
`
	t4Queue = `
resource "elastic_resource_flavor" "t4" {
  name = "t4-of-research"
}
resource "elastic_cluster_queue" "research" {
  name               = "research"
  namespace_selector = {}
  resource_groups = [{
    covered_resources = ["cpu", "memory", "nvidia.com/gpu"]
    flavors = [{
      name = elastic_resource_flavor.t4.name
      resources = [
        { name = "cpu", nominal_quota = "64" }, { name = "memory", nominal_quota = "512Gi" }, { name = "nvidia.com/gpu", nominal_quota = "4" },
      ]
    }]
  }]
}
`
)

// table has every folder of examples/ that holds configurations.
var table = map[string]example{
	"actions/elastic_job_checkpoint": {notApplied: newer},
	"actions/elastic_job_resume":     {notApplied: newer},
	"actions/elastic_job_suspend":    {notApplied: newer},
	"actions/elastic_queue_drain":    {notApplied: newer},
	"actions/elastic_queue_hold":     {notApplied: newer},
	"actions/elastic_queue_release":  {notApplied: newer},

	"list-resources/elastic_admission_check":         {notApplied: newer},
	"list-resources/elastic_cluster_queue":           {notApplied: newer},
	"list-resources/elastic_cohort":                  {notApplied: newer},
	"list-resources/elastic_local_queue":             {notApplied: newer},
	"list-resources/elastic_priority_class":          {notApplied: newer},
	"list-resources/elastic_resource_flavor":         {notApplied: newer},
	"list-resources/elastic_task":                    {notApplied: newer},
	"list-resources/elastic_topology":                {notApplied: newer},
	"list-resources/elastic_training_job":            {notApplied: newer},
	"list-resources/elastic_workload_priority_class": {notApplied: newer},

	"gke": {notApplied: "needs GKE's node pools and its credentials; TestTheExampleForGKEKeepsMastersOnMachinesThatStayAndGoesOnWithoutASpotMachine applies it on nodes like theirs"},

	"eks":                {notApplied: "needs EKS's node groups and its credentials; its objects are those of gke, with other labels"},
	"aks":                {notApplied: "needs AKS's node pools and its credentials; its objects are those of gke, with other labels"},
	"gpu-cluster":        {notApplied: "needs the providers helm and kubernetes from a registry, and GPUs"},
	"somebody-elses-job": {notApplied: "needs the provider kubernetes from a registry, KubeRay and Kubeflow Trainer"},

	"ci": {
		with:    []string{"modules"},
		without: map[string]string{"backend.tf": "a backend keeps its Secret after a destroy"},
	},
	"data-sources/elastic_cluster_capacity": {},
	"data-sources/elastic_forecast":         {before: classes, beforeBecause: ofUser},
	"data-sources/elastic_training_job": {beforeBecause: ofUser, before: `
resource "elastic_training_job" "low" {
  name      = "low-prio-job"
  namespace = "research"
  image     = "ghcr.io/elastic-training/elastic-trainer:0.1.0"
  model     = { name = "mnist" }
  data      = { training = "synthetic://digits?records=100&seed=1", records_per_task = 100 }
  training  = { minibatch_size = 10 }
  workers   = { max = 1, resources = { requests = { cpu = "1", memory = "1Gi" } } }
  master    = { resources = { requests = { cpu = "1", memory = "1Gi" } } }
  wait_for  = "succeeded"
}
`},
	"data-sources/elastic_workloads": {},
	"elastic-under-a-queue":          {with: []string{"models"}, variables: map[string]string{"config_path": "", "epochs": "1"}},
	"elastic-pytorch":                {with: []string{"pytorch"}, variables: map[string]string{"config_path": ""}},
	"forecast-gate":                  {with: []string{"models"}, variables: map[string]string{"config_path": ""}, before: classes, beforeBecause: ofUser},
	"functions/accelerator_labels":   {},
	"functions/elasticdl_args": {
		before: classes, beforeBecause: ofUser,
		files: map[string]string{"mnist_functional_api.py": "examples/models/mnist_functional_api.py"},
	},
	"functions/quantity":      {},
	"functions/skypilot_task": {before: nightQueue, beforeBecause: theTeams, asRoot: skyPilot},
	"modules/team-queue": {variables: map[string]string{
		"team": "alone", "namespace": "default", "flavors": `[{"name":"any","quota":{"cpu":"4"}}]`,
	}},
	"names-limits-and-pods":             {},
	"provider":                          {},
	"pytorch":                           {},
	"racks-and-blocks":                  {},
	"teams-in-a-cohort":                 {with: []string{"modules"}},
	"resources/elastic_admission_check": {},
	"resources/elastic_cluster_queue":   {},
	"resources/elastic_cohort":          {},
	"resources/elastic_local_queue":     {},
	"resources/elastic_priority_class":  {},
	"resources/elastic_resource_flavor": {},
	"resources/elastic_task": {
		before: t4Queue, beforeBecause: "quota is an administrator's",
		variables: map[string]string{"wandb_api_key": "x"},
		asRoot:    skyPilot + "; its second task's image is root's, too, and installs packages",
	},
	"resources/elastic_topology":                {},
	"resources/elastic_training_job":            {},
	"resources/elastic_workload_priority_class": {},
	"kind":                                 {notApplied: "TestTheCommandsOfTheQuickstartWorkAsPrinted applies it on kind; here no node declares its GPUs"},
	"tutorials/elastic-scheduling":         {with: []string{"models"}, variables: map[string]string{"config_path": ""}},
	"tutorials/queue-priorities":           {variables: map[string]string{"config_path": "", "high_seconds": "600"}, asRoot: skyPilot},
	"tutorials/queue-priorities/workloads": {variables: map[string]string{"config_path": ""}},
	"unreliable-nodes":                     {with: []string{"models"}, variables: map[string]string{"config_path": "", "epochs": "1"}},
}

// namespaces are those that examples name: no resource of this provider makes them.
var namespaces = []string{"research", "team-a", "team-research"}
