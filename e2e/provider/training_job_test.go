package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/zoo"
)

const job = "elastic_training_job.test"

// modelFile is the text of a model file.
func modelFile() string {
	iris, err := zoo.Load("iris")
	if err != nil {
		panic(err) // it is built in
	}
	return string(iris.Source)
}

// trainingJob is a resource block: the smallest job, with lines that override it or add to it.
func trainingJob(name, lines string) string {
	attributes := map[string]string{
		"image":    `"registry.invalid/nobody:0"`, // nothing runs it: these tests report in the master's place
		"model":    fmt.Sprintf("{ content = %q }", modelFile()),
		"data":     `{ training = "synthetic://digits?records=1000&seed=1", records_per_task = 100 }`,
		"training": `{ minibatch_size = 10, grads_to_wait = 2 }`,
		"workers":  `{ max = 2 }`,
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		if !regexp.MustCompile(`(?m)^\s*` + key + `\s*=`).MatchString(lines) {
			fmt.Fprintf(&b, "  %s = %s\n", key, attributes[key])
		}
	}
	return fmt.Sprintf("resource \"elastic_training_job\" \"test\" {\n  name = %q\n%s%s\n}\n", name, b.String(), lines)
}

// plannedJob checks the action, and that nothing is left to do after it.
func plannedJob(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{
		PreApply:             []plancheck.PlanCheck{plancheck.ExpectResourceAction(job, action)},
		PostApplyPostRefresh: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()},
	}
}

func jobState(attribute string, value knownvalue.Check) statecheck.StateCheck {
	return statecheck.ExpectKnownValue(job, tfjsonpath.New(attribute), value)
}

func liveJob(t *testing.T, name string) *batchv1.Job {
	t.Helper()
	live, err := adminClient(t).BatchV1().Jobs("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func jobConfig(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	live, err := adminClient(t).CoreV1().ConfigMaps("default").Get(t.Context(), trainingjob.ConfigMapName(name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func liveWorkers(t *testing.T, name string) trainingjob.Workers {
	t.Helper()
	workers, err := trainingjob.DecodeWorkers([]byte(jobConfig(t, name).Data[trainingjob.WorkersKey]))
	if err != nil {
		t.Fatal(err)
	}
	return workers
}

// report writes a status as the master does: to the ConfigMap that is the contract between them.
func report(t *testing.T, name string, status trainingjob.Status) {
	t.Helper()
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"data": map[string]string{trainingjob.StatusKey: string(text)}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = adminClient(t).CoreV1().ConfigMaps("default").Patch(t.Context(), trainingjob.StatusName(name), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "elastic-trainer"})
	if err != nil {
		t.Fatal(err)
	}
}

// nothingLeft checks that no object and no pod of a job remains.
func nothingLeft(t *testing.T, name string) {
	t.Helper()
	kube, ctx := adminClient(t), context.WithoutCancel(t.Context())
	selected := metav1.ListOptions{LabelSelector: trainingjob.LabelJobName + "=" + name}
	lists := map[string]func() (int, error){
		"Job": func() (int, error) { l, err := kube.BatchV1().Jobs("").List(ctx, selected); return len(l.Items), err },
		"Pod": func() (int, error) { l, err := kube.CoreV1().Pods("").List(ctx, selected); return len(l.Items), err },
		"ConfigMap": func() (int, error) {
			l, err := kube.CoreV1().ConfigMaps("").List(ctx, selected)
			return len(l.Items), err
		},
		"Secret": func() (int, error) { l, err := kube.CoreV1().Secrets("").List(ctx, selected); return len(l.Items), err },
		"Service": func() (int, error) {
			l, err := kube.CoreV1().Services("").List(ctx, selected)
			return len(l.Items), err
		},
		"ServiceAccount": func() (int, error) {
			l, err := kube.CoreV1().ServiceAccounts("").List(ctx, selected)
			return len(l.Items), err
		},
		"Role": func() (int, error) { l, err := kube.RbacV1().Roles("").List(ctx, selected); return len(l.Items), err },
		"RoleBinding": func() (int, error) {
			l, err := kube.RbacV1().RoleBindings("").List(ctx, selected)
			return len(l.Items), err
		},
		"Lease": func() (int, error) {
			l, err := kube.CoordinationV1().Leases("").List(ctx, selected)
			return len(l.Items), err
		},
	}
	for kind, list := range lists {
		if n, err := list(); err != nil || n > 0 {
			t.Errorf("%d %s objects of job %s are left (%v)", n, kind, name, err)
		}
	}
}

func TestTrainingJobLife(t *testing.T) {
	name := "life"
	var uid types.UID
	expectSameJob := func() {
		if live := liveJob(t, name); live.UID != uid {
			t.Errorf("the job was replaced: UID %s, was %s", live.UID, uid)
		}
	}
	steps(t,
		resource.TestStep{
			Config:           asAdmin("") + trainingJob(name, ""),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionCreate),
			ConfigStateChecks: []statecheck.StateCheck{
				jobState("namespace", text("default")), jobState("wait_for", text("created")), jobState("on_finished", text("keep")),
				jobState("phase", text("Pending")), jobState("steps_done", knownvalue.Int64Exact(0)), jobState("model_sha256", knownvalue.Null()),
				jobState("master", knownvalue.NotNull()), jobState("labels", knownvalue.MapSizeExact(0)),
				jobState("uid", knownvalue.StringRegexp(regexp.MustCompile(`^[0-9a-f-]{36}$`))),
			},
			Check: func(*terraform.State) error {
				live := liveJob(t, name)
				uid = live.UID
				if live.Spec.Suspend == nil || *live.Spec.Suspend {
					t.Error("the job is complete, but still suspended")
				}
				secret, err := adminClient(t).CoreV1().Secrets("default").Get(t.Context(), trainingjob.CredentialsName(name), metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if len(secret.Data[trainingjob.TokenKey]) != 64 || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != live.UID {
					t.Errorf("token of %d characters, owners %v", len(secret.Data[trainingjob.TokenKey]), secret.OwnerReferences)
				}
				return nil
			},
		},
		resource.TestStep{ // update right after create, in place
			Config: asAdmin("") + trainingJob(name, `
				labels      = { team = "vision" }
				annotations = { "example.com/note" = "A note." }
				workers = {
				  min = 2, max = 4
				  resources     = { requests = { cpu = "3000m", memory = "4096Mi" }, limits = { cpu = "3000m", memory = "4096Mi" } }
				  node_selector = { pool = "training" }
				  tolerations   = [{ key = "spot", operator = "Exists" }]
				  env           = { LOG = "debug" }
				  pod_overrides = jsonencode({ spec = { dnsPolicy = "Default" } })
				  affinity      = jsonencode({ podAntiAffinity = {} })
				}`),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				workers := liveWorkers(t, name)
				spec := workers.Template.Spec
				if workers.Min != 2 || workers.Max != 4 || spec.NodeSelector["pool"] != "training" || spec.Tolerations[0].Key != "spot" || spec.DNSPolicy != "Default" {
					t.Errorf("workers.json: %+v", workers)
				}
				if cpu := spec.Containers[0].Resources.Requests.Cpu().String(); cpu != "3" {
					t.Errorf("cpu %s", cpu)
				}
				live := liveJob(t, name)
				lease, err := adminClient(t).CoordinationV1().Leases("default").Get(t.Context(), trainingjob.MasterName(name), metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if live.Labels["team"] != "vision" || live.Annotations["example.com/note"] != "A note." || lease.Labels["team"] != "vision" {
					t.Errorf("labels %v, annotations %v, the Lease's labels %v", live.Labels, live.Annotations, lease.Labels)
				}
				expectSameJob()
				return nil
			},
		},
		resource.TestStep{ // other spellings of the same are no change
			Config: asAdmin("") + trainingJob(name, `
				labels      = { team = "vision" }
				annotations = { "example.com/note" = "A note." }
				workers = {
				  min = 2, max = 4
				  resources     = { requests = { cpu = "3", memory = "4Gi" }, limits = { cpu = "3", memory = "4Gi" } }
				  node_selector = { pool = "training" }
				  tolerations   = [{ key = "spot", operator = "Exists" }]
				  env           = { LOG = "debug" }
				  pod_overrides = "{ \"spec\": { \"dnsPolicy\": \"Default\" } }"
				  affinity      = "{ \"podAntiAffinity\": {} }"
				}`),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionNoop),
		},
		resource.TestStep{ // what is removed from the configuration is removed from the objects
			Config:           asAdmin("") + trainingJob(name, "workers = { max = 4, env = {} }"),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionUpdate),
			Check: func(*terraform.State) error {
				workers := liveWorkers(t, name)
				spec := workers.Template.Spec
				if workers.Min != 1 || len(spec.NodeSelector) != 0 || len(spec.Tolerations) != 2 || spec.DNSPolicy != "" || spec.Affinity != nil || spec.Containers[0].Resources.Requests.Cpu().String() != "1" {
					t.Errorf("workers.json: %+v", workers)
				}
				live := liveJob(t, name)
				if live.Labels["team"] != "" || live.Annotations["example.com/note"] != "" || live.Labels["app"] != "elasticdl" {
					t.Errorf("labels %v, annotations %v", live.Labels, live.Annotations)
				}
				expectSameJob()
				return nil
			},
		},
		resource.TestStep{
			ResourceName:                         job,
			ImportState:                          true,
			ImportStateId:                        "default/" + name,
			ImportStateVerify:                    true,
			ImportStateVerifyIdentifierAttribute: "name",
			ImportStateVerifyIgnore:              []string{"workers.env.%"},
		},
		resource.TestStep{ // what decides the result replaces the job
			Config:           asAdmin("") + trainingJob(name, "workers = { max = 4 }\n training = { minibatch_size = 20, grads_to_wait = 2 }"),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionDestroyBeforeCreate),
			Check: func(*terraform.State) error {
				if live := liveJob(t, name); live.UID == uid {
					t.Error("the job is the same")
				}
				return nil
			},
		},
		resource.TestStep{ // so does the master's pod, the whole of it too
			Config:           asAdmin("") + trainingJob(name, "workers = { max = 4 }\n training = { minibatch_size = 20, grads_to_wait = 2 }\n master = { env = { A = \"b\" } }"),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionDestroyBeforeCreate),
		},
		resource.TestStep{
			Config:           asAdmin("") + trainingJob(name, "workers = { max = 4 }\n training = { minibatch_size = 20, grads_to_wait = 2 }"),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionDestroyBeforeCreate),
		},
	)
	nothingLeft(t, name)
}

// everyAttribute sets all that can be set.
const everyAttribute = `
	namespace            = "default"
	image_pull_policy    = "IfNotPresent"
	image_pull_secrets   = ["registry"]
	service_account_name = "default"
	output               = "/output/job"
	labels               = { team = "vision" }
	annotations          = { note = "A note." }
	data = { training = "/data/train", validation = "/data/test", format = "idx", codec = "tf_example", records_per_task = 50 }
	training = { epochs = 3, minibatch_size = 5, grads_to_wait = 4, seed = 7, learning_rate = 0.25 }
	volumes = [
	  { name = "data", mount_path = "/data", host_path = "/srv/data", read_only = true },
	  { name = "output", mount_path = "/output", claim_name = "models", mount_on = "master" },
	  { name = "words", mount_path = "/words", config_map = "words", mount_on = "workers" },
	  { name = "scratch", mount_path = "/scratch", empty_dir = { medium = "Memory", size_limit = "1024Mi" } },
	]
	master = {
	  resources        = { requests = { cpu = "1000m" } }
	  node_selector    = { a = "b" }
	  tolerations      = [{ key = "k", operator = "Equal", value = "v", effect = "NoExecute", toleration_seconds = 5 }]
	  affinity         = jsonencode({ nodeAffinity = {} })
	  env              = { A = "b" }
	  labels           = { a = "b" }
	  annotations      = { a = "b" }
	  termination_grace_period_seconds = 3
	  pod_overrides    = jsonencode({ spec = { hostAliases = [{ ip = "10.0.0.1", hostnames = ["x"] }] } })
	}
	workers = {
	  min = 2
	  max = 4
	  resources        = { requests = { cpu = "1000m" }, limits = {} }
	  labels           = { a = "b" }
	  termination_grace_period_seconds = 0
	}
	wait_for      = "created"
	fail_on_error = true
	on_finished   = "recreate"
	timeouts      = { create = "5m", delete = "5m" }`

func TestTrainingJobWithEveryAttribute(t *testing.T) {
	name := "everything"
	steps(t,
		resource.TestStep{
			Config:           asAdmin("") + trainingJob(name, everyAttribute),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionCreate),
		},
		resource.TestStep{
			ResourceName:                         job,
			ImportState:                          true,
			ImportStateId:                        "default/" + name,
			ImportStateVerify:                    true,
			ImportStateVerifyIdentifierAttribute: "name",
			// What no object holds, and the user's spelling.
			ImportStateVerifyIgnore: []string{
				"fail_on_error", "on_finished", "master_priority_check", "timeouts", "workers.resources", "master.resources", "volumes",
			},
		},
		resource.TestStep{ // in place, beside everything else
			Config:           asAdmin("") + trainingJob(name, strings.Replace(everyAttribute, "max = 4", "max = 3", 1)),
			ConfigPlanChecks: plannedJob(plancheck.ResourceActionUpdate),
		},
	)
	nothingLeft(t, name)
}

func TestTrainingJobRequests(t *testing.T) {
	p := newProxy(t)
	name := "requests"
	config := func(lines string) string { return p.config("forecast = \"off\"") + trainingJob(name, lines) }
	// The requests for the parts of a job that has not ended run at the same time, in any order.
	parts := []string{
		"GET /api/v1/namespaces/default/configmaps/" + name + "-model", "GET /api/v1/namespaces/default/secrets/" + name + "-credentials",
		"GET /api/v1/namespaces/default/serviceaccounts/" + name, "GET /api/v1/namespaces/default/services/" + name + "-master",
		"GET /apis/coordination.k8s.io/v1/namespaces/default/leases/" + name + "-master",
		"GET /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings/" + name, "GET /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/" + name,
	}
	slices.Sort(parts)
	expect := func(paths []string, want ...string) func(*terraform.State) error {
		return func(*terraform.State) error {
			var inOrder, ofParts []string
			for _, request := range distinct(p.take()) {
				if slices.Contains(parts, request) {
					ofParts = append(ofParts, request)
				} else {
					inOrder = append(inOrder, request)
				}
			}
			slices.Sort(ofParts)
			if diff := cmp.Diff(want, inOrder) + cmp.Diff(paths, ofParts); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			return nil
		}
	}
	maps := "/api/v1/namespaces/default/configmaps"
	object := "/apis/batch/v1/namespaces/default/jobs/" + name
	// The requests of a plan about other objects, once: where the job would be queued by default, and whether its pods
	// fit.
	queues, nodes := "GET /apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues", "GET /api/v1/nodes"
	// Its pods are looked at until it has begun.
	pods := "GET /api/v1/namespaces/default/pods"
	read := []string{"GET " + object, "GET " + maps + "/" + name + "-job", "GET " + maps + "/" + name + "-status", pods}
	steps(t,
		resource.TestStep{
			Config: config(""),
			Check: expect(nil, queues, nodes, "POST /apis/batch/v1/namespaces/default/jobs", "POST "+maps, "POST /api/v1/namespaces/default/secrets",
				"POST /api/v1/namespaces/default/serviceaccounts", "POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
				"POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", "POST /apis/coordination.k8s.io/v1/namespaces/default/leases",
				"POST /api/v1/namespaces/default/services", "PATCH "+object, pods),
		},
		resource.TestStep{ // a plan without changes costs four requests, and one for each part besides
			PreConfig: func() { p.take() },
			Config:    config(""),
			Check:     expect(parts, read...),
		},
		resource.TestStep{ // how an apply waits is in no object
			PreConfig: func() { p.take() },
			Config:    config(`on_finished = "recreate"`),
			Check:     expect(parts, read...),
		},
		resource.TestStep{
			PreConfig: func() { p.take() },
			Config:    config("on_finished = \"recreate\"\n workers = { max = 3 }"),
			Check:     expect(parts, append(slices.Clone(read), nodes, "PATCH "+maps+"/"+name+"-job (json patch)", "PATCH "+maps+"/"+name+"-job (apply) (force)")...),
		},
	)
}

func TestTrainingJobValuesMayBeUnknown(t *testing.T) {
	steps(t, resource.TestStep{
		Config: asAdmin("") + `resource "terraform_data" "later" {
			  input = { name = "unknown", text = ` + strconv.Quote(modelFile()) + `, n = 10, class = null, labels = { a = "b" }, cpu = "1000m", path = "/data" }
			}
			` + strings.Replace(trainingJob("x", `
			  model    = { content = terraform_data.later.output.text }
			  training = { minibatch_size = terraform_data.later.output.n, learning_rate = terraform_data.later.output.n }
			  labels   = terraform_data.later.output.labels
			  volumes  = [{ name = "data", mount_path = terraform_data.later.output.path, host_path = terraform_data.later.output.path }]
			  master   = { priority_class_name = terraform_data.later.output.class, env = terraform_data.later.output.labels }
			  workers  = { max = terraform_data.later.output.n, resources = { requests = { cpu = terraform_data.later.output.cpu } } }`),
			`name = "x"`, `name = terraform_data.later.output.name`, 1),
		ConfigPlanChecks:  plannedJob(plancheck.ResourceActionCreate),
		ConfigStateChecks: []statecheck.StateCheck{jobState("name", text("unknown"))},
	})
	nothingLeft(t, "unknown")
	steps(t, resource.TestStep{ // what would have been refused, had it been known
		Config: asAdmin("") + "resource \"terraform_data\" \"later\" {\n  input = \"x = (\"\n}\n" +
			trainingJob("unknown-file", "model = { content = terraform_data.later.output }"),
		ExpectError: wantText("Invalid model file", "model.content:", "elastic-trainer model"),
	})
	nothingLeft(t, "unknown-file")
}

func TestTrainingJobRefusesWhatCannotRun(t *testing.T) {
	for behaviour, c := range map[string]struct{ lines, wantText string }{
		"a maximum below the minimum":          {"workers = { min = 3, max = 2 }", "could never reach its minimum"},
		"no workers":                           {"workers = { min = 0, max = 2 }", "between 1 and"},
		"a synthetic data set that is none":    {`data = { training = "synthetic://digts", records_per_task = 1 }`, "there is no such synthetic data set"},
		"no records":                           {`data = { training = "synthetic://digits?records=0", records_per_task = 1 }`, `records="0" is not a number from 1`},
		"a model file with a mistake":          {`model = { content = "import tensorflow as tf\n\ntf.keras.layers.Dens(10)\n" }`, "model.content:3"},
		"data of another kind":                 {`data = { training = "hdfs://name/x", records_per_task = 1 }`, "this version reads files, directories, s3://, gs://, synthetic://"},
		"a volume without a source":            {`volumes = [{ name = "a", mount_path = "/a" }]`, "0 sources"},
		"a volume over the job's files":        {`volumes = [{ name = "a", mount_path = "/etc/elastic", claim_name = "a" }]`, "own files"},
		"a quantity that is none":              {`workers = { max = 1, resources = { requests = { memory = "4GB" } } }`, "did you mean"},
		"a limit below its request":            {`master = { resources = { requests = { cpu = "2" }, limits = { cpu = "1" } } }`, "cannot be below"},
		"an affinity with a misspelled field":  {`master = { affinity = jsonencode({ nodeAffinty = {} }) }`, "nodeAffinty"},
		"overrides that are no JSON":           {`workers = { max = 1, pod_overrides = "spec:" }`, "JSON"},
		"overrides that make the pod restart":  {`workers = { max = 1, pod_overrides = jsonencode({ spec = { restartPolicy = "Always" } }) }`, "only Never works"},
		"a label of the job's own":             {`workers = { max = 1, labels = { app = "x" } }`, "which the job sets itself"},
		"a learning rate below zero":           {`training = { minibatch_size = 1, learning_rate = -1 }`, "must be a positive number"},
		"a policy for the end that is unknown": {`on_finished = "delete"`, `"keep" "recreate"`},
		"a topology without a queue":           {`topology = { required = "rack" }`, "topology is set, but queue is not"},
		"a topology of two places":             {`queue = { name = "q" }` + "\n" + `topology = { required = "rack", preferred = "rack" }`, "sets 2 of required, preferred"},
		"the queue that Kueue gives to Jobs":   {`queue = { name = "default" }`, "apart from each other"},
	} {
		t.Run(behaviour+" is refused when planning", func(t *testing.T) {
			steps(t, resource.TestStep{Config: asAdmin("") + trainingJob("refused", c.lines), PlanOnly: true, ExpectError: wantText(c.wantText)})
		})
	}
	t.Run("a name of 51 characters is refused when planning", func(t *testing.T) {
		steps(t, resource.TestStep{Config: asAdmin("") + trainingJob(strings.Repeat("a", 51), ""), PlanOnly: true, ExpectError: wantText("at most 50 fit")})
	})
	t.Run("a priority class that does not exist is refused before anything is made", func(t *testing.T) {
		steps(t, resource.TestStep{
			Config:      asAdmin("") + trainingJob("no-class", `workers = { max = 1, priority_class_name = "nowhere" }`),
			ExpectError: wantText(`PriorityClass "nowhere" does not exist`, "elastic_priority_class.NAME.name"),
		})
		nothingLeft(t, "no-class")
	})
	t.Run("an id without a namespace is no job's", func(t *testing.T) {
		steps(t,
			resource.TestStep{
				Config: asAdmin("") + trainingJob("imported", ""), ResourceName: job, ImportState: true, ImportStateId: "imported",
				ExpectError: wantText("must be NAMESPACE/NAME"),
			},
		)
	})
}

func TestTrainingJobUsesThePriorityClassesOfItsConfiguration(t *testing.T) {
	steps(t, resource.TestStep{
		Config: asAdmin("") + `
			resource "elastic_priority_class" "test" {
			  name  = "of-the-job"
			  value = 1000
			}
			` + trainingJob("classes", `
			master  = { priority_class_name = elastic_priority_class.test.name }
			workers = { max = 1, priority_class_name = elastic_priority_class.test.name, min_priority_class_name = elastic_priority_class.test.name }`),
		ConfigPlanChecks: plannedJob(plancheck.ResourceActionCreate),
		Check: func(*terraform.State) error {
			class := liveClass(t, "of-the-job")
			if got := liveJob(t, "classes").Spec.Template.Spec.PriorityClassName; got != class.Name {
				t.Errorf("the master's class is %q", got)
			}
			return nil
		},
	})
	nothingLeft(t, "classes")
}

func TestTrainingJobThatExistsIsNotAdopted(t *testing.T) {
	name := "exists"
	_, err := adminClient(t).BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := adminClient(t).BatchV1().Jobs("default").Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	steps(t, resource.TestStep{
		Config:      asAdmin("") + trainingJob(name, ""),
		ExpectError: wantText("Cannot create Job default/exists", "exists already", "terraform import elastic_training_job.ADDRESS default/exists"),
	})
}
