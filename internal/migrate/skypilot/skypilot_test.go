package skypilot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/task"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/task/accelerator"
)

func TestTheTutorialsFiles(t *testing.T) {
	for name, want := range map[string]task.Task{
		"low.yaml":  {NumNodes: 1, Run: "echo \"hi i'm a low priority job\"\nsleep 1000000\n", Accelerators: []accelerator.Request{{Name: "T4", Count: 4}}, Queue: "user-queue", PriorityClass: "low-priority"},
		"high.yaml": {NumNodes: 1, Run: "echo \"hi i'm a high priority job\"\nsleep 1000000\n", Accelerators: []accelerator.Request{{Name: "T4", Count: 4}}, Queue: "user-queue", PriorityClass: "high-priority"},
	} {
		t.Run(name+" is read as it is written there, without a warning", func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "tutorials", "queue-priorities", name))
			if err != nil {
				t.Fatal(err)
			}
			got, warnings, err := Parse(name, text, Given{})
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// everything has every key that a task takes over.
const everything = `
name: train
num_nodes: 2
resources:
  infra: k8s
  accelerators: {T4: 4}
  cpus: 4+
  memory: 32
  image_id: docker:pytorch/pytorch:2.6.0
  use_spot: false
  labels: {team: vision, kueue.x-k8s.io/queue-name: user-queue}
  job_recovery:
    max_restarts_on_errors: 3
    recover_on_exit_codes: [33, 34]
envs: &envs
  EPOCHS: 3
  DEBUG: true
  RATE: 0.5
  NAME: "010"
  CLAIM: mnist
secrets:
  HF_TOKEN:
volumes:
  /data: $CLAIM
config:
  kubernetes:
    kueue: {local_queue_name: user-queue}
    pod_config:
      spec:
        runtimeClassName: nvidia
        containers:
          - securityContext: {privileged: true}
setup: pip install -r requirements.txt
run: python train.py
`

func TestParse(t *testing.T) {
	t.Run("every key that a task has is taken over", func(t *testing.T) {
		got, warnings, err := Parse("all.yaml", []byte(everything), Given{Secrets: map[string]bool{"HF_TOKEN": true}})
		if err != nil {
			t.Fatal(err)
		}
		want := task.Task{
			Name: "train", NumNodes: 2, Setup: "pip install -r requirements.txt", Run: "python train.py",
			Image: "pytorch/pytorch:2.6.0", Accelerators: []accelerator.Request{{Name: "T4", Count: 4}}, CPUs: "4+", Memory: "32",
			Labels: map[string]string{"team": "vision"}, Queue: "user-queue",
			Recovery:     task.Recovery{MaxRestartsOnErrors: 3, RecoverOnExitCodes: []int{33, 34}},
			Envs:         map[string]string{"EPOCHS": "3", "DEBUG": "True", "RATE": "0.5", "NAME": "010", "CLAIM": "mnist"},
			Volumes:      []task.Volume{{Name: "volume-0", MountPath: "/data", PVC: "mnist"}},
			PodOverrides: []byte(`{"spec":{"containers":[{"name":"task","securityContext":{"privileged":true}}],"runtimeClassName":"nvidia"}}`),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if len(warnings) != 1 || warnings[0].Line != 24 || !strings.Contains(warnings[0].Message, `taken for the claim "mnist"`) {
			t.Errorf("warnings: %v", warnings)
		}
	})
	t.Run("the settings can be rendered", func(t *testing.T) {
		got, _, err := Parse("all.yaml", []byte(everything), Given{Secrets: map[string]bool{"HF_TOKEN": true}})
		if err != nil {
			t.Fatal(err)
		}
		got.TrainerImage = "trainer"
		if problems := got.Problems(); len(problems) > 0 {
			t.Error(problems)
		}
	})
}

func TestAccelerators(t *testing.T) {
	one := func(name string, count int) []accelerator.Request {
		return []accelerator.Request{{Name: name, Count: count}}
	}
	two := []accelerator.Request{{Name: "T4", Count: 1}, {Name: "L4", Count: 1}}
	for name, c := range map[string]struct {
		yaml    string
		want    []accelerator.Request
		ordered bool
	}{
		"a name and a count": {"accelerators: T4:4", one("T4", 4), false},
		"a name alone":       {"accelerators: T4", one("T4", 1), false},
		"in quotes":          {"accelerators: 'T4:4'", one("T4", 4), false},
		"a key and a value":  {"accelerators: {T4: 4}", one("T4", 4), false},
		"a key and a value in lines of their own":   {"accelerators:\n    T4: 4", one("T4", 4), false},
		"a list is in order":                        {"accelerators: [T4:1, 'L4:1']", two, true},
		"a set is not":                              {"accelerators: {T4:1, L4:1}", two, false},
		"a set in quotes":                           {"accelerators: {'T4:1', 'L4:1'}", two, false},
		"keys with counts are a set":                {"accelerators: {T4: 1, L4: 1}", two, false},
		"a list of one has no order":                {"accelerators: [T4:4]", one("T4", 4), false},
		"none":                                      {"accelerators: None", nil, false},
		"nothing":                                   {"accelerators:", nil, false},
		"any_of":                                    {"any_of:\n  - accelerators: T4\n  - accelerators: L4", two, false},
		"ordered":                                   {"ordered:\n  - {accelerators: T4}\n  - {accelerators: L4, infra: k8s}", two, true},
		"alternatives of the same size":             {"cpus: 2\n  any_of:\n  - {accelerators: T4, cpus: 4}\n  - {accelerators: L4, cpus: 4}", two, false},
		"an alternative on a cloud is left out":     {"ordered:\n  - {accelerators: H100:8, infra: aws/us-east-1, cpus: 96+}\n  - {accelerators: T4, infra: k8s}", one("T4", 1), false},
		"alternatives that agree are one":           {"accelerators: T4\n  any_of:\n  - infra: k8s\n  - infra: kubernetes", one("T4", 1), false},
		"alternatives override what is beside them": {"any_of:\n  - accelerators: T4\n  - accelerators: L4\n  accelerators: V100", two, false},
		"an alternative has the settings beside it": {"accelerators: L4\n  ordered:\n  - accelerators: T4\n  - infra: k8s", two, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse("x.yaml", []byte("run: a\nresources:\n  "+c.yaml), Given{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Accelerators); diff != "" || got.Ordered != c.ordered {
				t.Errorf("ordered %t, %s", got.Ordered, diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		want string // the error, or its beginning
	}{
		"a slip of the pen":                     {"run: a\nresources:\n  acelerators: T4", "x.yaml:3: unknown key resources.acelerators; did you mean accelerators?"},
		"at the top":                            {"rn: a", "x.yaml:1: unknown key rn; did you mean run?"},
		"every problem is reported, in order":   {"foo: 1\nresources:\n  cpu: 4\n  instance_type: x", "x.yaml:1: unknown key foo\nx.yaml:3: unknown key resources.cpu; did you mean cpus?\nx.yaml:4: resources.instance_type names a machine of a cloud"},
		"a key twice":                           {"run: a\nname: b\nrun: c", "x.yaml:3: run is there twice; the first is in line 1"},
		"two documents":                         {"run: a\n---\nrun: b", "x.yaml:2: a second document begins; SkyPilot would run a pipeline"},
		"no document":                           {"", "x.yaml:1: the file is empty"},
		"comments only":                         {"# run: a\n", "x.yaml:1: the file is empty"},
		"no YAML":                               {"run: a\n\tb: c", "x.yaml:2: this is no YAML: found a tab character that violates indentation"},
		"a tab":                                 {"resources:\n\tcpus: 4", "x.yaml:2: this is no YAML: found character that cannot start any token; a line is indented with spaces, not with a tab"},
		"a list":                                {"- run: a", "x.yaml:1: the file is a list; keys and values are expected"},
		"a word":                                {"run", "x.yaml:1: the file is a single value; keys and values are expected"},
		"a list where a word is expected":       {"run: [a]", "x.yaml:1: run is a list; a single value is expected"},
		"a secret with its value":               {"run: a\nsecrets:\n  HF_TOKEN: hf_123", "x.yaml:3: secrets.HF_TOKEN has its value in the file"},
		"a secret that nobody gives":            {"run: a\nsecrets:\n  HF_TOKEN:", "x.yaml:3: secrets.HF_TOKEN has no value; refer to a Secret"},
		"a variable that nobody gives":          {"run: a\nenvs:\n  EPOCHS: null", "x.yaml:3: envs.EPOCHS has no value; sky would take it from --env"},
		"a variable that Python would change":   {"run: a\nenvs:\n  MODE: 0755", "x.yaml:3: envs.MODE is 0755, which SkyPilot reads as a number"},
		"a variable that no shell could read":   {"run: a\nenvs:\n  a-b: c", "x.yaml:2: envs has a variable named \"a-b\""},
		"a working directory":                   {"workdir: .\nrun: a", "x.yaml:1: workdir is \".\", a directory of the machine on which sky runs; say what is in it by the attribute workdir"},
		"a repository":                          {"workdir: {url: https://example.com/a.git}\nrun: a", "x.yaml:1: workdir is a git repository"},
		"files to copy":                         {"run: a\nfile_mounts:\n  /data: s3://bucket", "x.yaml:2: file_mounts copies files or mounts buckets"},
		"a service":                             {"run: a\nservice:\n  readiness_probe: /", "x.yaml:2: service describes a service"},
		"spot":                                  {"run: a\nresources: {use_spot: true}", "x.yaml:2: resources.use_spot asks a cloud for spot machines"},
		"another cloud":                         {"run: a\nresources: {infra: aws/us-east-1}", "x.yaml:2: resources.infra is \"aws/us-east-1\"; this provider runs tasks on Kubernetes only"},
		"an image of a virtual machine":         {"run: a\nresources: {image_id: ami-0868a20f5a3bf9702}", "x.yaml:2: resources.image_id is \"ami-0868a20f5a3bf9702\", an image of a virtual machine"},
		"alternatives of other images":          {"run: a\nresources:\n  any_of:\n  - {accelerators: T4, image_id: docker:a}", "x.yaml:4: resources.any_of[0].image_id cannot differ between alternatives"},
		"alternatives of other sizes":           {"run: a\nresources:\n  any_of:\n  - {accelerators: T4, cpus: 4}\n  - {accelerators: L4, cpus: 8}", "x.yaml:5: resources.any_of[1].cpus is 8, and 4 in the first alternative"},
		"a size in one alternative":             {"run: a\nresources:\n  any_of:\n  - {accelerators: T4}\n  - {accelerators: L4, memory: 8}", "x.yaml:5: resources.any_of[1].memory is 8, and not set in the first alternative"},
		"alternatives of other counts":          {"run: a\nresources:\n  any_of:\n  - {accelerators: T4:4}\n  - {accelerators: L4:1}", "x.yaml:3: resources.any_of: T4:4 needs 4 and L4:1 needs 1, but a pod has one request"},
		"a list of other counts":                {"run: a\nresources:\n  accelerators: [T4:4, L4:1]", "x.yaml:3: resources.accelerators: T4:4 needs 4 and L4:1 needs 1, but a pod has one request"},
		"alternatives on clouds only":           {"run: a\nresources:\n  any_of:\n  - {accelerators: T4, cloud: aws}", "x.yaml:4: resources.any_of[0].cloud is \"aws\"; this provider runs tasks on Kubernetes only"},
		"an alternative without an accelerator": {"run: a\nresources:\n  any_of:\n  - accelerators: T4\n  - infra: k8s", "x.yaml:5: resources.any_of[1] asks for no accelerator"},
		"alternatives twice":                    {"run: a\nresources:\n  accelerators: [T4, L4]\n  any_of: [{accelerators: V100}]", "x.yaml:4: resources.any_of stands beside several accelerators"},
		"a part of an accelerator":              {"run: a\nresources: {accelerators: T4:0.5}", "x.yaml:2: resources.accelerators: accelerators \"T4:0.5\": \"0.5\" is not a whole number"},
		"an accelerator twice":                  {"run: a\nresources: {accelerators: [T4, T4]}", "x.yaml:2: resources.accelerators has T4:1 twice"},
		"no amount of CPU":                      {"run: a\nresources:\n  cpus: many", "x.yaml:3: cpus is \"many\"; write a number of CPUs"},
		"no amount of memory":                   {"run: a\nresources:\n  memory: 32x", "x.yaml:3: memory is \"32x\"; write GiB"},
		"the exit code of a killed container":   {"run: a\nresources:\n  job_recovery:\n    recover_on_exit_codes: [33, 137]", "x.yaml:4: resources.job_recovery.recover_on_exit_codes has 137, which"},
		"no recovery":                           {"run: a\nresources: {job_recovery: none}", "x.yaml:2: resources.job_recovery is \"none\", but Kueue queues every preempted task again"},
		"two queues":                            {"run: a\nresources: {labels: {kueue.x-k8s.io/queue-name: a}}\nconfig: {kubernetes: {kueue: {local_queue_name: b}}}", "x.yaml:3: config.kubernetes.kueue.local_queue_name is \"b\", but another key of the file says \"a\""},
		"a group of pods":                       {"run: a\nresources: {labels: {kueue.x-k8s.io/pod-group-name: a}}", "x.yaml:2: resources.labels.kueue.x-k8s.io/pod-group-name is set by the task"},
		"half a node":                           {"run: a\nnum_nodes: 0.5", "x.yaml:2: num_nodes is \"0.5\"; a whole number is expected"},
		"no node":                               {"run: a\nnum_nodes: 0", "x.yaml:2: num_nodes is 0; a task has at least one node"},
		"a queue by two names":                  {"run: a\nconfig: {kubernetes: {kueue: {local_queue_name: a}, quota: {queue: b}}}", "x.yaml:2: config.kubernetes.quota.queue is \"b\", but another key of the file says \"a\""},
		"a secret of SkyPilot's server":         {"run: a\nmanaged_secrets: [hf-token]", "x.yaml:2: managed_secrets names secrets that SkyPilot's server keeps"},
		"a hook":                                {"run: a\nconfig: {hooks: [{run: b}]}", "x.yaml:2: config.hooks are run by SkyPilot's agent"},
		"a volume to be made":                   {"run: a\nvolumes: {/data: {size: 10Gi}}", "x.yaml:2: volumes./data describes a volume; make the claim"},
		"a key that is a list":                  {"? [a]\n: b", "x.yaml:1: a key of the file is a list; a word is expected"},
		"a merge of no keys":                    {"<<: a\nrun: b", "x.yaml:1: the file is a single value"},
		"a document that is too long":           {strings.Repeat("#", maxBytes+1), "x.yaml:1: the file has 1048577 bytes"},
		"aliases of aliases of aliases":         {bomb(), "x.yaml:5: the file says too much"},
		"an alias of itself":                    {"envs: &a\n  <<: *a\nrun: b", "x.yaml:"},
	} {
		t.Run(name+" is refused with its line", func(t *testing.T) {
			_, _, err := Parse("x.yaml", []byte(c.yaml), Given{})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("got  %v\nwant %s", err, c.want)
			}
			var all *Error
			if !errors.As(err, &all) || all.File != "x.yaml" || len(all.Problems) == 0 {
				t.Errorf("%T", err)
			}
		})
	}
}

// bomb is a short file of ten thousand million values.
func bomb() string {
	var b strings.Builder
	b.WriteString("config:\n kubernetes:\n  pod_config:\n   a0: &a0 x\n")
	for _, n := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		before := "*a" + string(n[0]-1)
		b.WriteString("   a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat(before+", ", 10), ", ") + "]\n")
	}
	return b.String()
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		line int
		want string
	}{
		"a disk":          {"run: a\nresources:\n  disk_size: 256", 3, "resources.disk_size has no effect: a pod uses its node's disk"},
		"ports":           {"run: a\nresources:\n  ports: 8080", 3, "resources.ports has no effect: nothing outside of the cluster reaches a task"},
		"a context":       {"run: a\nresources:\n  infra: k8s/mine", 3, `not context "mine"`},
		"autostop":        {"run: a\nresources:\n  autostop: 10m", 3, "a task ends when its run ends"},
		"a strategy":      {"run: a\nresources:\n  job_recovery: FAILOVER", 3, "goes back into its queue"},
		"a wait":          {"run: a\nconfig: {kubernetes: {provision_timeout: 600}}", 2, "a queued task waits until there is capacity"},
		"an account":      {"run: a\nconfig: {kubernetes: {remote_identity: trainer}}", 2, "service_account_name names the pods' account"},
		"a time limit":    {"run: a\nresources: {labels: {maxRunDurationSeconds: '3200'}}", 2, "is a label as any other, and no limit"},
		"cost estimation": {"run: a\ninputs: {gs://a: 100}", 2, "it only estimates"},
	} {
		t.Run(name+" has no effect, or not that, and a warning with its line", func(t *testing.T) {
			_, warnings, err := Parse("x.yaml", []byte(c.yaml), Given{})
			if err != nil || len(warnings) != 1 || warnings[0].Line != c.line || !strings.Contains(warnings[0].Message, c.want) {
				t.Errorf("%v, %v", err, warnings)
			}
		})
	}
}

func TestGiven(t *testing.T) {
	t.Run("what the caller gives may be left open or be somewhere else in the file", func(t *testing.T) {
		got, _, err := Parse("x.yaml", []byte("workdir: .\nenvs: {A: , B: c}\nsecrets: {S: }\nrun: a"),
			Given{Workdir: true, Envs: map[string]bool{"A": true}, Secrets: map[string]bool{"S": true}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"B": "c"}, got.Envs); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMergedKeys(t *testing.T) {
	t.Run("<< merges keys that are not there", func(t *testing.T) {
		got, _, err := Parse("x.yaml", []byte("resources: &r\n  cpus: 4\nenvs:\n  <<: [{A: b, C: d}]\n  A: own\nrun: a"), Given{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"A": "own", "C": "d"}, got.Envs); diff != "" || got.CPUs != "4" {
			t.Error(got.CPUs, diff)
		}
	})
}

// FuzzParse asks that whatever the bytes are, the reader answers: with problems that have lines of the file, or with a
// task that says the same when it is read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{everything, bomb(), "run: a", "a: &a [*a]", "<<: {run: a}", "run: !!binary aGk=", "envs: {A: 0x10, B: .inf, C: 2026-01-01}", "resources: {any_of: [{accelerators: [T4]}]}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, warnings, err := Parse("x.yaml", text, Given{})
		lines := strings.Count(string(text), "\n") + strings.Count(string(text), "\r") + strings.Count(string(text), "\u0085") + strings.Count(string(text), "\u2028") + strings.Count(string(text), "\u2029") + 2
		var all *Error
		if err != nil && (!errors.As(err, &all) || len(all.Problems) == 0) {
			t.Fatalf("%T: %v", err, err)
		}
		if all != nil {
			warnings = all.Problems
		}
		for _, p := range warnings {
			if p.Line < 1 || p.Line > lines || p.Message == "" {
				t.Fatalf("line %d of %d: %q", p.Line, lines, p.Message)
			}
		}
		again, _, errAgain := Parse("x.yaml", text, Given{})
		if diff := cmp.Diff(got, again); diff != "" || (err == nil) != (errAgain == nil) {
			t.Fatal(diff, err, errAgain)
		}
		_ = got.Problems() // answers whatever was read
	})
}

func TestWhatSkyPilotAcceptsIsAccepted(t *testing.T) {
	for what, c := range map[string]struct {
		text  string
		check func(task.Task) bool
	}{
		"an empty secret":                   {"run: a\nsecrets: {HF_TOKEN: \"\"}", func(task.Task) bool { return true }},
		"a variable without a value":        {"run: a\nenvs: {HF_TOKEN: , MODEL: m}", func(t task.Task) bool { return len(t.Envs) == 1 && t.Envs["MODEL"] == "m" }},
		"a container's image on Kubernetes": {"run: a\nresources: {image_id: ghcr.io/x/y:1, infra: k8s/context}", func(t task.Task) bool { return t.Image == "ghcr.io/x/y:1" }},
		"a list of maps and strings": {"run: a\nresources: {accelerators: [{T4: 1}, \"V100:1\", {A100: }]}", func(t task.Task) bool {
			return t.Ordered && len(t.Accelerators) == 3 && t.Accelerators[2] == accelerator.Request{Name: "A100", Count: 1}
		}},
	} {
		if got, _, err := Parse("x.yaml", []byte(c.text), Given{AnySecret: true, AnyEnv: true}); err != nil || !c.check(got) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, _, err := Parse("x.yaml", []byte("run: a\nresources: {image_id: ami-1, infra: '*'}"), Given{}); err == nil {
		t.Error("on any infrastructure an image without docker: is a virtual machine's")
	}
}
