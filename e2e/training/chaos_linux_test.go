package training_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

// Environment variables of the chaos test: whether it runs, how long it lasts, and its last result.
const (
	soakVariable     = "ELASTIC_SOAK"
	durationVariable = "ELASTIC_CHAOS_DURATION"
	seedVariable     = "ELASTIC_CHAOS_SEED"
)

const (
	chaosDuration = 5 * time.Minute
	chaosPace     = 100 * time.Millisecond
	// silence is how long a job may do no step without saying what it waits for.
	silence = 30 * time.Second
)

// Two jobs, one that adds at its master and one that adds between its workers, live through everything that the faults
// have, again and again in another order, several at once. It runs alone: it kills the API server.
func TestAJobSurvivesChaosAndAlwaysReportsWhatItWaitsFor(t *testing.T) {
	if os.Getenv(soakVariable) == "" {
		t.Skipf("it takes %v and more; make soak runs it", chaosDuration)
	}
	duration, seed := chaosDuration, rand.Uint64()
	if text := os.Getenv(durationVariable); text != "" {
		given, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", durationVariable, err)
		}
		duration = given
	}
	if text := os.Getenv(seedVariable); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
		seed = given
	}
	t.Logf("chaos of %v; %s=%d gives the same faults in the same order", duration, seedVariable, seed)
	random := rand.New(rand.NewPCG(seed, 0))

	definition := define(t, referenceModel)
	definition.Max = 3
	definition.Job.Checkpoint = &trainingjob.Checkpoint{Steps: 20}
	steps := int64(30)
	undisturbed := 2 * chaosPace // three workers have four gradients to compute
	definition.Job.Training.Epochs = max(1, int(duration/undisturbed/time.Duration(steps)))
	steps *= int64(definition.Job.Training.Epochs)
	want := localOf(t, definition)

	faults := &faults{T: t, random: random, began: time.Now(), counts: map[string]int{}}
	var watching sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), 2*duration+patience.Long)
	defer stop()
	defer watching.Wait()
	for _, aggregation := range []string{trainingjob.AggregationMaster, trainingjob.AggregationAllReduce} {
		d := paced(definition, chaosPace)
		d.Job.Training.Aggregation = aggregation
		disk := faults.disk()
		d.Job.Output = "/output"
		d.Job.Namespace = cluster.Namespace(t)
		enforce(t, d.Job.Namespace, "privileged") // a host path
		d.Volumes = []trainingjob.Volume{{Name: "output", MountPath: d.Job.Output, HostPath: disk.path, Mount: trainingjob.MountMaster}}
		v := &victim{job: start(t, d), disk: disk, aggregation: aggregation, ended: make(chan error, 1)}
		faults.victims = append(faults.victims, v)
		v.awaitStep(1)
		watching.Go(func() { v.ended <- v.watch(ctx) })
	}
	faults.rage(ctx, duration)
	if err := cluster.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("after %v the chaos is over: %v", time.Since(faults.began).Round(time.Second), faults.counts)
	for _, v := range faults.victims {
		if err := <-v.ended; err != nil {
			t.Errorf("the job with aggregation %s: %v", v.aggregation, err)
			continue
		}
		s := v.awaitStatus("success", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseSucceeded })
		if s.ModelSHA256 != want || s.StepsDone != steps {
			t.Errorf("aggregation %s: hash %s after %d steps, and undisturbed %s after %d", v.aggregation, s.ModelSHA256, s.StepsDone, want, steps)
		}
		t.Logf("aggregation %s: %d steps under %d masters, %v after the beginning; the longest time without one %v; events %v",
			v.aggregation, s.StepsDone, s.Generation, time.Since(faults.began).Round(time.Second), v.longest.Round(100*time.Millisecond), v.events())
	}
}

// victim is a job in the chaos.
type victim struct {
	*job
	disk        disk
	aggregation string
	ended       chan error
	longest     time.Duration // without a step, according to the status
	said        atomic.Bool   // what it waits for, when that was for long
}

// watch reads the status until the job has succeeded. It is an error if the job fails, if it does not end in time, and
// if it does no step for long without saying why.
func (v *victim) watch(ctx context.Context) error {
	var last trainingjob.Status
	moved, reported := time.Now(), false
	for {
		s, err := v.status(ctx)
		if err == nil {
			if s.Phase == trainingjob.PhaseSucceeded {
				return nil
			}
			if s.Phase.Finished() {
				return fmt.Errorf("it ended: %+v", s)
			}
			// A master may begin at an older step than the last reported one.
			if s.StepsDone != last.StepsDone {
				v.longest = max(v.longest, time.Since(moved))
				moved, reported = time.Now(), false
			}
			last = s
		}
		if time.Since(moved) > silence && err == nil && !reported {
			if s.Message == "" {
				return fmt.Errorf("no step for %v, and the status does not say why: %+v", silence, s)
			}
			reported = true
			v.said.Store(true)
			v.Logf("aggregation %s: no step for %v; the status says %s: %s", v.aggregation, silence, s.Phase, s.Message)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it has not ended in time; the last status, after %v without a step: %+v", time.Since(moved), last)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// events counts the job's Events by their reasons.
func (v *victim) events() map[string]int32 {
	v.Helper()
	list, err := v.client.CoreV1().Events(v.ns).List(v.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + v.name})
	if err != nil {
		v.Fatal(err)
	}
	counts := map[string]int32{}
	for _, e := range list.Items {
		counts[e.Reason] += max(1, e.Count)
	}
	return counts
}

// processes lists those of a role in the job's pods. Of the master it is the one that its supervisor starts.
func (v *victim) processes(role string) (ids []int) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, path := range commands {
		command, _ := os.ReadFile(path) // it may have ended
		if !strings.Contains(string(command), "\x00"+role+"\x00") || role == trainingjob.RoleMaster && !strings.Contains(string(command), "\x00--supervised\x00") {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if !strings.Contains(string(environment), "MY_POD_NAMESPACE="+v.ns+"\x00") {
			continue
		}
		if id, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
