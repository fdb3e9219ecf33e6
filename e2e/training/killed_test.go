package training_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

// publishedLine is what a master says of each step when it logs all.
var publishedLine = regexp.MustCompile(`(?m)^time=(\S+) level=DEBUG msg=published step=(\d+)`)

func TestAMasterProcessThatIsKilledIsBackAndNoStepIsLostNorPodDoubled(t *testing.T) {
	t.Parallel()
	d := paced(define(t, referenceModel), 100*time.Millisecond)
	d.Master.PodOverrides = fmt.Appendf(nil, `{"spec":{"containers":[{"name":"master","args":["master","--job","%s/%s","--listen","$(MY_POD_IP):%d","--log-level","debug"]}]}}`,
		trainingjob.ConfigDir, trainingjob.JobKey, trainingjob.MasterPort)
	j := start(t, d)
	j.awaitStatus("two ready workers", twoReady)
	j.awaitStep(5)
	workers := j.workersAlive()
	supervisor, master := j.supervised()
	before := j.awaitStatus("a goodput split", func(s trainingjob.Status) bool { return s.GoodputSplit != nil && s.StepsDone >= 5 }).GoodputSplit
	killed := time.Now()
	if err := syscall.Kill(master, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	during := j.awaitStatus("the second generation", func(s trainingjob.Status) bool {
		return s.Generation == 2 && s.StepsDone > 5 && s.GoodputSplit != nil && s.GoodputSplit.Phase != ""
	}).GoodputSplit
	if hash, want := j.awaitSuccess(), local(t, referenceModel); hash != want {
		t.Errorf("hash %s, and undisturbed %s", hash, want)
	}
	end := j.awaitStatus("the end", func(s trainingjob.Status) bool { return s.Phase == trainingjob.PhaseSucceeded })
	if d := end.Disruptions; d == nil || d.Count != 1 || len(d.Newest) != 1 || d.Newest[0].Role != trainingjob.RoleMaster ||
		d.Newest[0].Kind != trainingjob.DisruptionLost || d.Newest[0].Recovered == nil || d.Newest[0].FullSize == nil || d.LostSeconds <= 0 {
		t.Errorf("the loss of the master is recorded as %+v", d)
	}
	after := end.GoodputSplit
	if after == nil || after.UnobservedSeconds <= 0 ||
		after.Seconds[trainingjob.GoodputRecovering] < before.Seconds[trainingjob.GoodputRecovering]+after.UnobservedSeconds-0.001 {
		t.Errorf("the second master continues %+v as %+v", before, after)
	} else { // after its end a job has no phase, so that the time of its last report says nothing
		life, grown := 0.0, during.At.Sub(before.At).Seconds()
		for phase, seconds := range during.Seconds {
			life += seconds
			grown += before.Seconds[phase]
		}
		if math.Abs(life-grown) > 0.01 {
			t.Errorf("%v add up to %g s; the first master's, and the time since, to %g s", during.Seconds, life, grown)
		}
		t.Logf("goodput phases %v, %g s of them without a master's report", after.Seconds, after.UnobservedSeconds)
	}
	if now := j.workersAlive(); !slices.Equal(now, workers) {
		t.Errorf("the workers were %v, and are %v", workers, now)
	}
	masters, err := j.pods(t.Context(), trainingjob.RoleMaster)
	if err != nil || len(masters) != 1 || masters[0].Status.ContainerStatuses[0].RestartCount != 0 {
		t.Fatalf("its pod is another: %s %v", names(masters), err)
	}
	text, err := j.log(t.Context(), masters[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	var last int64 = -1
	back := false
	for _, m := range publishedLine.FindAllStringSubmatch(text, -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		step, err2 := strconv.ParseInt(m[2], 10, 64)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		switch {
		case step == last+1:
		case step == last && at.After(killed) && !back: // what died with its master before a worker had it
		default:
			t.Errorf("step %d was published after step %d", step, last)
		}
		if at.After(killed) && !back {
			t.Logf("the next step, %d, came %v after the kill of process %d below %d", step, at.Sub(killed).Round(time.Millisecond), master, supervisor)
			back = true
		}
		last = step
	}
	if last != 29 {
		t.Errorf("the last step published is %d:\n%s", last, text)
	}
}

// workersAlive lists the pods of workers, however they are.
func (j *job) workersAlive() (ids []types.UID) {
	j.Helper()
	pods, err := j.pods(j.Context(), trainingjob.RoleWorker)
	if err != nil {
		j.Fatal(err)
	}
	for _, p := range pods {
		if p.Status.Phase != corev1.PodFailed {
			ids = append(ids, p.UID)
		}
	}
	slices.Sort(ids)
	return ids
}

// supervised are the two processes of the master's container: the one that was started, and its child.
func (j *job) supervised() (supervisor, master int) {
	j.Helper()
	one := j.master()
	if child := childOf(one); child > 0 {
		return one, child
	}
	return parentOf(one), one
}

func childOf(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				return child
			}
		}
	}
	return 0
}

func parentOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
