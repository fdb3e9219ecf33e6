package local_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datacmd"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

// Parameters of the chaos runs.
const (
	chaosRuns     = 3 // in make test-all; 1 with -short, 100 with ELASTIC_SOAK
	chaosSoakRuns = 100
	chaosSeed     = "ELASTIC_CHAOS_SEED" // of the first run; the others have the numbers behind it
	mostLives     = 12                   // starts of a run's master, the last of which is not disturbed
)

// A master ends within lifeEnds, whatever is done to it, and within grace once it was asked to or killed. On a machine
// that is not busy it must take less than the 30 s of a pod's termination grace period: the slowest is logged.
var lifeEnds, grace = patience.Long, patience.Medium

// TestRunsThatAreDisturbedAtRandomEndWithTheRightResultOrARefusal trains with `elastic-trainer train`, with validation
// data, while workers and masters are killed, paused and stopped, data are replaced, and strangers are connected. The
// same command is repeated until it has ended with a model: it must be the one of an undisturbed run on the data
// that are there, and so must its evaluations.
func TestRunsThatAreDisturbedAtRandomEndWithTheRightResultOrARefusal(t *testing.T) {
	runs, first := chaosRuns, uint64(1)
	if testing.Short() {
		runs = 1
	}
	if os.Getenv("ELASTIC_SOAK") != "" {
		runs, first = chaosSoakRuns, uint64(time.Now().Unix())
	}
	if text := os.Getenv(chaosSeed); text != "" {
		var err error
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	known := newChaosReference(t)
	for i := range runs {
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel() // it is mostly waiting
			newChaosRun(t, seed, known).run()
		})
	}
}

// chaosSets are the data sets that replace one another: records and seed of each, by name.
var chaosSets = map[string][2]int64{
	"training": {400, 1}, "other training": {400, 2},
	"validation": {150, 9}, "other validation": {150, 10}, "short validation": {60, 9},
}

// chaosJob is what all runs train: 30 steps.
func chaosJob(training, validation string) trainingjob.Job {
	spec := reference("testdata/reference_model.py")
	spec.Data.Training, spec.Data.Validation, spec.Data.RecordsPerTask = training, validation, 20
	spec.Training.Epochs = 3
	return spec
}

// chaosReference is what undisturbed runs give: models by the digest of their job, which is that of their training
// data, and below it by the digest of their validation data, evaluated at every step.
type chaosReference struct {
	sets   map[string]string // where each data set is
	models map[string]map[string]*master.ModelInfo
	names  map[string]string // of data sets, by digest
}

func newChaosReference(t *testing.T) *chaosReference {
	t.Helper()
	known := &chaosReference{sets: map[string]string{}, models: map[string]map[string]*master.ModelInfo{}, names: map[string]string{}}
	for name, set := range chaosSets {
		known.sets[name] = filepath.Join(t.TempDir(), name)
		if _, err := datacmd.Synth(t.Context(), dataset.Digits, set[0], uint64(set[1]), datacmd.Output{Dir: known.sets[name]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, training := range []string{"training", "other training"} {
		for _, validation := range []string{"validation", "other validation", "short validation"} {
			spec := chaosJob(known.sets[training], known.sets[validation])
			spec.Evaluation = &trainingjob.Evaluation{Steps: 1}
			model := trained(t, spec, run{workers: 1, threads: 1})
			info := described(t, model)
			if known.models[info.Job] == nil {
				known.models[info.Job] = map[string]*master.ModelInfo{}
			}
			known.models[info.Job][info.Validation] = &info
			known.names[info.Job], known.names[info.Validation] = training, validation
		}
	}
	return known
}

// chaosRun is one command that is repeated until it ends with a model.
type chaosRun struct {
	*testing.T
	rng    *rand.Rand
	known  *chaosReference
	dir    string
	args   []string
	listen string
	every  int64 // steps between two evaluations

	present map[string]string          // the name of the set that is in each place, "training" and "validation"
	read    map[string]map[string]bool // those that were there in this life
	faults  int                        // to come
	actions []string                   // the actions, in order
	slowest time.Duration              // a master's end
}

func newChaosRun(t *testing.T, seed uint64, known *chaosReference) *chaosRun {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	c := &chaosRun{
		T: t, rng: rng, known: known, dir: t.TempDir(), every: int64(2 + rng.IntN(6)), present: map[string]string{}, faults: 3 + rng.IntN(7),
		listen: freeAddress(t, fmt.Sprintf("127.%d.%d.%d:0", 1+rng.IntN(254), rng.IntN(255), 1+rng.IntN(254))),
	}
	for _, place := range []string{"training", "validation"} {
		c.put(place, place)
	}
	c.args = []string{
		"train", "--model-file", "testdata/reference_model.py", "--train-data-dir", filepath.Join(c.dir, "training"), "--validation-data-dir", filepath.Join(c.dir, "validation"),
		"--output", filepath.Join(c.dir, "output"), "--num-worker", strconv.Itoa(1 + rng.IntN(4)), "--num-epoch", "3", "--minibatch-size", "10", "--grads-to-wait", "4",
		"--record-per-task", "20", "--evaluation-steps", strconv.FormatInt(c.every, 10), "--checkpoint-steps", strconv.Itoa(1 + rng.IntN(10)), "--threads", "1",
		"--pace", fmt.Sprintf("%dms", 5+rng.IntN(40)), "--listen", c.listen, "--aggregation", []string{"master", "allreduce", "auto"}[rng.IntN(3)],
	}
	return c
}

// run repeats the command until it has ended with a model.
func (c *chaosRun) run() {
	defer func() {
		c.Logf("%s\nthe slowest end of a master that was asked to stop: %s", strings.Join(c.actions, "\n"), c.slowest.Round(time.Millisecond))
	}()
	for life := range mostLives {
		if life == mostLives-1 {
			c.faults = 0
		}
		code, output := c.life()
		switch {
		case code == coordinator.ExitDone:
			c.check(output)
			return
		case code == coordinator.ExitJobFailed:
			c.checkRefusal(output)
		case code != coordinator.ExitInterrupted && code != killed || c.Failed():
			c.Fatalf("exit code %d: %s", code, output)
		}
	}
	c.Fatalf("it was started %d times, and has not ended with a model", mostLives)
}

// killed is the exit code of a process that the test has killed.
const killed = -1

func (c *chaosRun) logf(format string, args ...any) {
	c.actions = append(c.actions, fmt.Sprintf(format, args...))
}

// life runs the command once, and disturbs it.
func (c *chaosRun) life() (code int, output string) {
	c.Helper()
	c.read = map[string]map[string]bool{}
	for place, set := range c.present {
		c.read[place] = map[string]bool{set: true}
	}
	program, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), lifeEnds)
	defer cancel()
	var log eventually.Text
	cmd := exec.CommandContext(ctx, program, c.args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.logf("started, with %v", c.present)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	strangers := &strangers{}
	defer strangers.leave()
	deadly := false
	for c.faults > 0 && !deadly {
		select {
		case err := <-ended:
			return c.ended(ctx, err), log.String()
		case <-time.After(time.Duration(50+c.rng.IntN(900)) * time.Millisecond):
			c.faults--
			deadly = c.disturb(cmd.Process, strangers)
		}
	}
	began := time.Now()
	err = <-ended
	if took := time.Since(began); deadly {
		c.slowest = max(c.slowest, took)
		if took > grace {
			c.Errorf("it took %v to end: %s", took, log.String())
		}
	}
	return c.ended(ctx, err), log.String()
}

func (c *chaosRun) ended(ctx context.Context, err error) (code int) {
	c.Helper()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		c.Fatalf("it did not end within %v", lifeEnds)
	case errors.As(err, &exit):
		code = exit.ExitCode() // −1 after a signal
	case err != nil:
		c.Fatal(err)
	}
	c.logf("ended with %d", code)
	return code
}

// disturb injects one fault, and reports whether it ends the master.
func (c *chaosRun) disturb(process *os.Process, s *strangers) (deadly bool) {
	signal := func(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) } // it may have ended just now
	pause := func(who string, pid int) {
		long := time.Duration(100+c.rng.IntN(2500)) * time.Millisecond
		c.logf("%s is paused for %v", who, long)
		signal(pid, syscall.SIGSTOP)
		time.AfterFunc(long, func() { signal(pid, syscall.SIGCONT) })
	}
	workers := workersOfProcess(process.Pid)
	switch kind := c.rng.IntN(12); {
	case kind < 2 && len(workers) > 0:
		c.logf("a worker is killed")
		signal(workers[c.rng.IntN(len(workers))], syscall.SIGKILL)
	case kind < 4 && len(workers) > 0:
		pause("a worker", workers[c.rng.IntN(len(workers))])
	case kind < 5:
		pause("the master", process.Pid)
	case kind < 7:
		c.logf("a client without credentials connects")
		s.come(c.Context(), c.listen, c.rng.IntN(3))
	case kind < 9:
		c.put("validation", []string{"validation", "other validation", "short validation"}[c.rng.IntN(3)])
	case kind < 10 && c.rng.IntN(3) == 0:
		c.put("training", []string{"training", "other training"}[c.rng.IntN(2)])
	case kind < 11:
		c.logf("the master is stopped")
		s.come(c.Context(), c.listen, 0)
		signal(process.Pid, syscall.SIGTERM)
		return true
	default:
		c.logf("the master is killed")
		signal(process.Pid, syscall.SIGKILL)
		return true
	}
	return false
}

// put replaces the data set in a place: file by file, or in place, or after a moment without any.
func (c *chaosRun) put(place, set string) {
	c.Helper()
	from, to := c.known.sets[set], filepath.Join(c.dir, place)
	how := c.rng.IntN(3)
	c.logf("%s: now %s (%d)", place, set, how)
	c.present[place] = set
	if c.read[place] != nil {
		c.read[place][set] = true
	}
	if how == 2 {
		if err := os.RemoveAll(to); err != nil {
			c.Fatal(err)
		}
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		c.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil || len(files) == 0 {
		c.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			c.Fatal(err)
		}
		path := filepath.Join(to, filepath.Base(file))
		if how > 0 {
			err = os.WriteFile(path, content, 0o600)
		} else if err = os.WriteFile(filepath.Join(to, ".new"), content, 0o600); err == nil {
			err = os.Rename(filepath.Join(to, ".new"), path)
		}
		if err != nil {
			c.Fatal(err)
		}
	}
}

// check compares the result of a run with those of undisturbed runs on the data that it may have read.
func (c *chaosRun) check(output string) {
	c.Helper()
	_, digest, found := strings.Cut(output, "\njob       ")
	digest, _, _ = strings.Cut(digest, "\n")
	if !found || len(digest) < 8 {
		c.Fatalf("it names no job: %s", output)
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "output", digest[:8], store.InfoFile))
	if err != nil {
		c.Fatal(err)
	}
	var got master.ModelInfo
	if err := json.Unmarshal(text, &got); err != nil {
		c.Fatal(err)
	}
	want := c.known.models[digest][got.Validation]
	if want == nil || !c.read["training"][c.known.names[digest]] || !c.read["validation"][c.known.names[got.Validation]] {
		c.Fatalf("it is of job %s (%s), evaluated on %s (%s), and there were %v: %s", digest, c.known.names[digest], got.Validation, c.known.names[got.Validation], c.read, text)
	}
	if got.SHA256 != want.SHA256 || got.Loss != want.Loss || got.Accuracy != want.Accuracy || got.Records != want.Records {
		c.Errorf("the model is %s, and undisturbed %+v", text, want)
	}
	c.checkEvaluations(got.Evaluations, want.Evaluations, digest, output)
}

// checkEvaluations expects those that were due, from some step on; all of them where the data were always the same.
func (c *chaosRun) checkEvaluations(got, want []trainingjob.Measurement, digest, output string) {
	c.Helper()
	last := int64(len(want))
	due := slices.DeleteFunc(slices.Clone(want), func(m trainingjob.Measurement) bool { return m.Step%c.every != 0 && m.Step != last })
	if len(got) == 0 || len(got) > len(due) || !reflect.DeepEqual(got, due[len(due)-len(got):]) {
		c.Errorf("evaluations of job %s: %+v, and undisturbed %+v: %s", digest, got, due, output)
	}
	replaced := slices.ContainsFunc(c.actions, func(line string) bool {
		return strings.HasPrefix(line, "training: now other") || strings.HasPrefix(line, "validation: now other") || strings.HasPrefix(line, "validation: now short")
	})
	if !replaced && len(got) != len(due) {
		c.Errorf("the data were never replaced, and of %d evaluations there are %d: %+v", len(due), len(got), got)
	}
}

// checkRefusal expects that a failed job names data that were replaced while it ran.
func (c *chaosRun) checkRefusal(output string) {
	c.Helper()
	text := strings.TrimSpace(output)
	refusal, place := text[strings.LastIndex(text, "\n")+1:], ""
	for name := range c.present {
		if strings.Contains(refusal, filepath.Join(c.dir, name)) {
			place = name
		}
	}
	if place == "" || !slices.ContainsFunc(c.actions[c.lifeBegan():], func(line string) bool { return strings.HasPrefix(line, place+": now ") }) {
		c.Fatalf("it was refused without a reason: %s", output)
	}
	c.logf("refused: %s", refusal)
}

// lifeBegan is where the newest process begins in the recorded messages.
func (c *chaosRun) lifeBegan() int {
	for i, line := range slices.Backward(c.actions) {
		if strings.HasPrefix(line, "started") {
			return i
		}
	}
	return 0
}

// workersOfProcess lists a process' children that are workers.
func workersOfProcess(pid int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			command, _ := os.ReadFile(filepath.Join("/proc", field, "cmdline"))
			if child, err := strconv.Atoi(field); err == nil && strings.Contains(string(command), "\x00worker\x00") {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// strangers are connections to a master by clients without credentials.
type strangers struct{ connections []net.Conn }

// come adds one: it sends nothing, half a handshake, or nothing after the handshake.
func (s *strangers) come(ctx context.Context, address string, kind int) {
	conn, err := (&net.Dialer{Timeout: patience.Short}).DialContext(ctx, "tcp", address)
	if err != nil {
		return // the master does not listen yet
	}
	s.connections = append(s.connections, conn)
	switch kind {
	case 1:
		_, _ = conn.Write([]byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}) // it may be gone
	case 2:
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // it has no credentials
		if conn.SetDeadline(time.Now().Add(patience.Short)) == nil {
			_ = secure.HandshakeContext(ctx) // likewise
		}
	}
}

func (s *strangers) leave() {
	for _, conn := range s.connections {
		_ = conn.Close()
	}
}
