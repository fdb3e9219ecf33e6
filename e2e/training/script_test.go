package training_test

import (
	"bytes"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
)

const countingScript = "../../internal/trainer/runtime/framework/testdata/counting.py"

func TestAScriptInPodsCountsEveryRecordOnceWhenItsWorkersAreLost(t *testing.T) {
	t.Parallel()
	at := slices.IndexFunc([]string{"/usr/bin/python3", "python3"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
	if at < 0 {
		t.Skip("python3 is not installed")
	}
	d := paced(define(t, countingScript), 200*time.Millisecond)
	d.Job.Name = "script"
	d.Job.Command = []string{[]string{"/usr/bin/python3", "python3"}[at]}
	d.Job.Data.Training = "indices://numbers?records=700"
	j := start(t, d)
	j.awaitStatus("two ready workers", twoReady)
	if err := syscall.Kill(j.worker(1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.awaitStatus("worker 2 in worker 1's place", func(s trainingjob.Status) bool {
		return len(s.Workers) == 2 && s.Workers[1].ID == 2 && s.Workers[1].State == "ready"
	})
	if err := j.client.CoreV1().Pods(j.ns).Delete(t.Context(), trainingjob.WorkerName(j.name, 2), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	j.awaitSuccess()
	kept, err := j.client.CoreV1().ConfigMaps(j.ns).Get(t.Context(), trainingjob.ModelName(j.name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	model := kept.BinaryData["model.safetensors"]
	tensors, _, err := safetensors.Read(bytes.NewReader(model), int64(len(model)))
	if err != nil {
		t.Fatal(err)
	}
	counts, err := tensors[0].Float32s()
	if err != nil || len(counts) != 700 {
		t.Fatalf("%d counts: %v", len(counts), err)
	}
	for record, n := range counts {
		if n != 1 {
			t.Errorf("record %d was applied %v times", record, n)
		}
	}
}
