package training_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/torchtest"
)

// TestALoopWithItsOwnCollectivesInPodsCountsEveryRecordOnceWhenItsWorkersAreLost kills one worker's process, or one of two
// processes of its script, and deletes another one's pod. The master's pod has no container with a framework.
func TestALoopWithItsOwnCollectivesInPodsCountsEveryRecordOnceWhenItsWorkersAreLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		processes int
		killed    func(j *job) int
	}{
		"one process on each worker": {1, func(j *job) int { return j.worker(1) }},
		"two processes on each worker": {2, func(j *job) int {
			scripts := childrenOf(j.worker(1))
			if len(scripts) != 2 {
				j.Fatalf("the worker has the processes %v", scripts)
			}
			return scripts[1]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lostCollectives(t, c.processes, c.killed)
		})
	}
}

func lostCollectives(t *testing.T, processes int, killed func(j *job) int) {
	t.Helper()
	python := torchtest.Find(t)
	output := t.TempDir()
	result := filepath.Join(output, "result")
	d := define(t, "../../internal/trainer/runtime/framework/testdata/tally.py")
	d.Job.Name, d.Job.Command, d.Job.Elastic = "collectives", []string{python}, trainingjob.ElasticCollectives
	d.Job.Data = trainingjob.Data{Training: "indices://numbers?records=320", Format: "recordio", Codec: "bytes", RecordsPerTask: 32}
	d.Job.Training = trainingjob.Training{Epochs: 8, MinibatchSize: 8, GradsToWait: 4, Seed: 1}
	d.Job.Output, d.Job.ProcessesPerWorker = "/output", processes
	d.Job.Namespace = cluster.Namespace(t)
	enforce(t, d.Job.Namespace, "privileged") // a host path
	d.Volumes = []trainingjob.Volume{{Name: "output", MountPath: d.Job.Output, HostPath: output, Mount: trainingjob.MountWorkers}}
	d.Workers.Env = map[string]string{"TALLY_RESULT": result, "TALLY_PACE": "0.2", "TALLY_READERS": "2"}
	if problems := d.Problems(); len(problems) > 0 {
		t.Fatal(problems)
	}
	j := start(t, d)
	if s := j.awaitStatus("two ready workers", twoReady); max(1, s.Processes) != processes {
		t.Errorf("the status says %d processes", s.Processes)
	}
	if err := syscall.Kill(killed(j), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.awaitStatus("worker 2 in worker 1's place", func(s trainingjob.Status) bool {
		return len(s.Workers) == 2 && s.Workers[1].ID == 2 && s.Workers[1].State == "ready"
	})
	if err := j.client.CoreV1().Pods(j.ns).Delete(t.Context(), trainingjob.WorkerName(j.name, 0), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	masters, err := j.client.CoreV1().Pods(j.ns).List(t.Context(), metav1.ListOptions{LabelSelector: trainingjob.LabelRole + "=" + trainingjob.RoleMaster})
	if err != nil || len(masters.Items) != 1 || len(masters.Items[0].Spec.Containers) != 1 {
		t.Errorf("the master's pod: %+v, %v", masters, err)
	}
	j.awaitSuccess()
	record := j.awaitStatus("the record of both", func(s trainingjob.Status) bool { return s.Disruptions != nil && s.Disruptions.Count == 2 }).Disruptions
	for i, want := range []trainingjob.DisruptionCause{
		{Pod: trainingjob.WorkerName(j.name, 1), Kind: trainingjob.DisruptionFailed}, {Pod: trainingjob.WorkerName(j.name, 0), Kind: trainingjob.DisruptionDeleted},
	} {
		if d := record.Newest[i]; d.Pod != want.Pod || d.Kind != want.Kind || d.Recovered == nil || d.Workers != 2 {
			t.Errorf("recorded is %+v", d)
		}
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var counts []float64
	if err := json.Unmarshal(text, &counts); err != nil || len(counts) != 320 {
		t.Fatalf("%d counts: %v", len(counts), err)
	}
	for record, n := range counts {
		if n != -float64(d.Job.Training.Epochs)/32 {
			t.Errorf("record %d was applied %v times", record, -n*32)
		}
	}
}

// childrenOf lists the processes that a process has started.
func childrenOf(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
