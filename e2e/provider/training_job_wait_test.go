package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainingjob"
)

// terminal runs terraform as a person does, in a directory of its own, and shows what it prints: warnings too, which
// plugin-testing keeps to itself.
type terminal struct {
	directory string
	reattach  string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	const address = "registry.terraform.io/hashicorp/elastic" // where terraform looks without required_providers
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	reattach, closed := make(chan *plugin.ReattachConfig, 1), make(chan struct{})
	factory := factories(t, nil)["elastic"]
	go func() {
		err := tf6server.Serve(address, func() tfprotov6.ProviderServer {
			server, err := factory()
			if err != nil {
				panic(err)
			}
			return server
		}, tf6server.WithDebug(ctx, reattach, closed), tf6server.WithLoggingSink(t), tf6server.WithoutLogStderrOverride(),
			tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
		if err != nil {
			t.Errorf("serve the provider: %v", err)
		}
	}()
	config := <-reattach
	t.Cleanup(func() {
		stop()
		<-closed
	})
	text, err := json.Marshal(map[string]any{address: map[string]any{
		"Protocol": config.Protocol, "ProtocolVersion": config.ProtocolVersion, "Pid": config.Pid, "Test": config.Test,
		"Addr": map[string]string{"Network": config.Addr.Network(), "String": config.Addr.String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &terminal{directory: t.TempDir(), reattach: string(text)}
}

// start runs a command. finish waits for it and returns what it printed and its exit code.
func (r *terminal) start(t *testing.T, config string, arguments ...string) (command *exec.Cmd, finish func() (string, int)) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.directory, "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command = exec.CommandContext(context.WithoutCancel(t.Context()), "terraform", append(arguments, "-no-color")...)
	command.Dir = r.directory
	command.Env = append(os.Environ(), "TF_REATTACH_PROVIDERS="+r.reattach, "TF_IN_AUTOMATION=1")
	printed := &lockedBuffer{}
	command.Stdout, command.Stderr = printed, printed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, func() (string, int) {
		if err := command.Wait(); err != nil && command.ProcessState == nil {
			t.Fatal(err)
		}
		return printed.String(), command.ProcessState.ExitCode()
	}
}

func (r *terminal) run(t *testing.T, config string, arguments ...string) (string, int) {
	t.Helper()
	_, finish := r.start(t, config, arguments...)
	return finish()
}

// destroyAtTheEnd leaves nothing behind, however the test ends.
func (r *terminal) destroyAtTheEnd(t *testing.T, name, config string) {
	t.Helper()
	t.Cleanup(func() {
		if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
		nothingLeft(t, name)
	})
}

func (r *terminal) expectNoChanges(t *testing.T, config string) {
	t.Helper()
	if printed, code := r.run(t, config, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("plan -detailed-exitcode exited with %d:\n%s", code, printed)
	}
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func expectSays(t *testing.T, printed string, sentences ...string) {
	t.Helper()
	if !says(sentences...).MatchString(printed) {
		t.Errorf("does not say %q:\n%s", sentences, printed)
	}
}

// nowhere keeps the master's pod from being scheduled.
const nowhere = "\n master = { node_selector = { nowhere = \"true\" } }"

// untilMade waits until the job is resumed, after which Create waits.
func untilMade(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		live, err := adminClient(t).BatchV1().Jobs("default").Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && live.Spec.Suspend != nil && !*live.Spec.Suspend {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("job %s is not made within a minute: %v", name, err)
		}
	}
}

func TestAWaitThatTimesOutIsAWarning(t *testing.T) {
	name, r := "times-out", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "wait_for = \"running\"\n timeouts = { create = \"6s\" }"+nowhere)
	r.destroyAtTheEnd(t, name, config)
	printed, code := r.run(t, config, "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectSays(t, printed, "Warning: Training job default/times-out is not running yet", "the time for it was up", "The job goes on",
		"Its phase is Pending", "Pods:", "cannot be scheduled", "Last events:", "1 added")
	uid := liveJob(t, name).UID
	r.expectNoChanges(t, config)
	if printed, code := r.run(t, config, "apply", "-auto-approve"); code != 0 || liveJob(t, name).UID != uid {
		t.Errorf("the next apply exited with %d and made the job anew:\n%s", code, printed)
	}
}

func TestAWaitThatIsInterruptedIsAWarning(t *testing.T) {
	name, r := "interrupted", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "wait_for = \"succeeded\""+nowhere)
	r.destroyAtTheEnd(t, name, config)
	command, finish := r.start(t, config, "apply", "-auto-approve")
	untilMade(t, name)
	uid := liveJob(t, name).UID
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	printed, _ := finish()
	expectSays(t, printed, "Training job default/interrupted is not succeeded yet", "it was interrupted")
	r.expectNoChanges(t, config)
	if liveJob(t, name).UID != uid {
		t.Error("the job was made anew")
	}
}

func TestAWaitSeesTheRunEnd(t *testing.T) {
	name, r := "ends", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "wait_for = \"succeeded\""+nowhere) + "\noutput \"sha\" {\n  value = elastic_training_job.test.model_sha256\n}\n"
	r.destroyAtTheEnd(t, name, config)
	_, finish := r.start(t, config, "apply", "-auto-approve")
	untilMade(t, name)
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 1, StepsTotal: 2})
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseSucceeded, StepsDone: 2, StepsTotal: 2, ModelSHA256: strings.Repeat("cd", 32)})
	printed, code := finish()
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectSays(t, printed, fmt.Sprintf("sha = %q", strings.Repeat("cd", 32)))
	r.expectNoChanges(t, config)
}

func TestARunThatFailsIsAnErrorOnlyWhenAskedFor(t *testing.T) {
	t.Run("a failed run is a warning, and stays", func(t *testing.T) {
		name, r := "fails", newTerminal(t)
		config := asAdmin("") + trainingJob(name, "wait_for = \"running\""+nowhere)
		r.destroyAtTheEnd(t, name, config)
		_, finish := r.start(t, config, "apply", "-auto-approve")
		untilMade(t, name)
		report(t, name, trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: "model.py:3: no such layer", StepsDone: 1, StepsTotal: 2})
		printed, code := finish()
		if code != 0 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectSays(t, printed, "Warning: Training job default/fails has failed", "model.py:3: no such layer", "at step 1 of 2", "fail_on_error = true")
		r.expectNoChanges(t, config)
	})
	t.Run("with fail_on_error it is an error, and the next plan begins anew", func(t *testing.T) {
		name, r := "fails-hard", newTerminal(t)
		config := asAdmin("") + trainingJob(name, "wait_for = \"succeeded\"\n fail_on_error = true"+nowhere)
		r.destroyAtTheEnd(t, name, config)
		_, finish := r.start(t, config, "apply", "-auto-approve")
		untilMade(t, name)
		report(t, name, trainingjob.Status{Phase: trainingjob.PhaseFailed, Message: "model.py:3: no such layer"})
		printed, code := finish()
		if code != 1 {
			t.Fatalf("apply exited with %d:\n%s", code, printed)
		}
		expectSays(t, printed, "Error: Training job default/fails-hard has failed", "model.py:3: no such layer", "Last events:")
		printed, _ = r.run(t, config, "plan")
		expectSays(t, printed, "tainted, so must be replaced")
	})
}

func TestAnUpdateWaitsToo(t *testing.T) {
	name, r := "update-waits", newTerminal(t)
	config := func(lines string) string { return asAdmin("") + trainingJob(name, lines+nowhere) }
	r.destroyAtTheEnd(t, name, config(""))
	if printed, code := r.run(t, config(""), "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseSucceeded, StepsDone: 2, StepsTotal: 2})
	if printed, code := r.run(t, config(`wait_for = "succeeded"`), "apply", "-auto-approve"); code != 0 || !strings.Contains(printed, "1 changed") {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	r.expectNoChanges(t, config(`wait_for = "succeeded"`))

	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseWaiting, Message: "fewer workers than the floor"})
	printed, code := r.run(t, config("wait_for = \"running\"\n timeouts = { update = \"3s\" }"), "apply", "-auto-approve")
	if code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	expectSays(t, printed, "Warning: Training job default/update-waits is not running yet", "Its phase is Waiting: fewer workers than the floor")
}

func TestAReplacementSaysWhatIsLost(t *testing.T) {
	name, r := "replaced", newTerminal(t)
	config := func(seed int) string {
		return asAdmin("") + trainingJob(name, fmt.Sprintf("training = { minibatch_size = 10, seed = %d }\n workers = { max = 1 }", seed))
	}
	r.destroyAtTheEnd(t, name, config(1))
	if printed, code := r.run(t, config(1), "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	report(t, name, trainingjob.Status{Phase: trainingjob.PhaseRunning, StepsDone: 3120, StepsTotal: 8000})
	printed, _ := r.run(t, config(2), "plan")
	expectSays(t, printed, "must be replaced", "# forces replacement", "Warning: Training job default/replaced will be replaced", "training decides the model that the run ends with",
		"at step 3,120 of 8,000", "this work is lost")
}

func TestAPodThatDoesNotGoIsNamed(t *testing.T) {
	name, r := "stuck", newTerminal(t)
	config := asAdmin("") + trainingJob(name, "timeouts = { delete = \"5s\" }"+nowhere)
	if printed, code := r.run(t, config, "apply", "-auto-approve"); code != 0 {
		t.Fatalf("apply exited with %d:\n%s", code, printed)
	}
	ref := trainingjob.JobRef{Name: name, Namespace: "default", UID: liveJob(t, name).UID}
	pod := trainingjob.WorkerPod(liveWorkers(t, name), ref, 0, true, "127.0.0.1:50001")
	pod.Finalizers = []string{"example.com/hold"}
	pods := adminClient(t).CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pods.Patch(cleanupContext(t), pod.Name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
		if printed, code := r.run(t, config, "destroy", "-auto-approve"); code != 0 {
			t.Errorf("destroy exited with %d:\n%s", code, printed)
		}
		nothingLeft(t, name)
	})
	printed, code := r.run(t, config, "destroy", "-auto-approve")
	if code != 1 {
		t.Fatalf("destroy exited with %d:\n%s", code, printed)
	}
	expectSays(t, printed, "Error: Training job default/stuck is not deleted yet", "pod stuck-worker-0 is held by finalizer example.com/hold", "kubectl patch pod -n default stuck-worker-0")
}
