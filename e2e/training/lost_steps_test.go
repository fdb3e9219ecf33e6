package training_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/web/webtest"
)

// A master continues from the state of any worker that is left. Only when master and workers are lost together does a
// job resume from its checkpoint, and repeats what came after it.
func TestTheStepsThatAreRecordedAsLostAreThoseThatWereRecomputed(t *testing.T) {
	t.Parallel()
	const every = 15
	d := paced(define(t, referenceModel), 200*time.Millisecond)
	d.Job.Namespace = cluster.Namespace(t)
	d.Job.Checkpoint, d.Job.Output = &trainingjob.Checkpoint{Steps: every}, "/output"
	enforce(t, d.Job.Namespace, "privileged") // a host path
	d.Volumes = []trainingjob.Volume{{Name: "output", MountPath: d.Job.Output, HostPath: t.TempDir(), Mount: trainingjob.MountMaster}}
	d.Master.PodOverrides = fmt.Appendf(nil, `{"spec":{"containers":[{"name":"master","args":["master","--job","%s/%s","--listen","$(MY_POD_IP):%d","--status-address","$(MY_POD_IP):%d","--log-level","debug"]}]}}`,
		trainingjob.ConfigDir, trainingjob.JobKey, trainingjob.MasterPort, trainingjob.StatusPort)
	j := start(t, d)
	j.awaitStatus("two ready workers", twoReady)
	j.awaitStep(every + 1)

	// Stopped workers compute no further step, so that the status catches up with what was published: a master that is
	// killed cannot report what it did after its last status.
	_, master := j.supervised()
	pods, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(pods) != 1 {
		t.Fatalf("masters: %s %v", names(pods), err)
	}
	workers := []int{j.worker(0), j.worker(1)}
	for _, pid := range workers {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // a test that fails here leaves none that is stopped
	}
	var before []int64
	j.await("a status with the last step that was published", func(ctx context.Context) (string, bool, error) {
		s, err := j.status(ctx)
		if err != nil {
			return "", false, err
		}
		before = j.published(pods[0].Name)
		return fmt.Sprintf("step %d of the status, and published %v", s.StepsDone, before),
			s.StepsDone == int64(len(before)) && s.GoodputSplit != nil && s.GoodputSplit.HighestStep == s.StepsDone && s.CheckpointStep == every, nil
	})
	for _, pid := range append([]int{master}, workers...) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}

	highest := int64(len(before))
	j.awaitStatus("a recovery", func(s trainingjob.Status) bool { return s.Generation == 2 && s.StepsDone > highest })
	address := fmt.Sprintf("http://%s:%d/", pods[0].Status.PodIP, trainingjob.StatusPort)
	scraped := webtest.Get(t, address+"metrics")
	page := webtest.Get(t, address)
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
	repeated := int64(0)
	for _, step := range j.published(pods[0].Name)[len(before):] {
		if step < highest {
			repeated++
		}
	}
	if repeated != highest-every || repeated == 0 {
		t.Errorf("%d steps were repeated; %d were done, and the checkpoint is of step %d", repeated, highest, every)
	}
	end := j.awaitStatus("the end", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseSucceeded })
	if end.Disruptions == nil {
		t.Fatal("no disruption is recorded")
	}
	listed, victims := int64(0), map[string]bool{}
	for _, one := range end.Disruptions.Newest {
		listed += one.LostSteps
		victims[one.Role+" "+string(one.Kind)] = true
		if one.Recovered == nil {
			t.Errorf("not recovered: %+v", one)
		}
	}
	if end.Disruptions.LostSteps != repeated || listed != repeated || !victims["master lost"] {
		t.Errorf("%d steps were repeated, and recorded is %+v", repeated, end.Disruptions)
	}
	if seconds := end.GoodputSplit.Seconds[trainingjob.GoodputRecomputing]; seconds <= 0 {
		t.Errorf("%g s are recorded as recomputing", seconds)
	}
	if want := fmt.Sprintf("elastic_trainer_lost_steps_total %d\n", repeated); !strings.Contains(scraped, want) {
		t.Errorf("the metrics lack %q:\n%s", want, scraped)
	}
	if want := fmt.Sprintf("%d step", repeated); !strings.Contains(page, want) || !strings.Contains(page, "<h2>Disruptions</h2>") {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
	t.Logf("%d steps repeated; disruptions %+v", repeated, end.Disruptions)
}

// published are the steps that the master of a pod has published, from its log.
func (j *job) published(pod string) (steps []int64) {
	j.Helper()
	text, err := j.log(j.Context(), pod)
	if err != nil {
		j.Fatal(err)
	}
	for _, m := range publishedLine.FindAllStringSubmatch(text, -1) {
		step, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			j.Fatal(err)
		}
		steps = append(steps, step)
	}
	return steps
}
