package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// modelFileName is the final model's name, in ConfigMap NAME-model and below a run's output directory.
const modelFileName = "model.safetensors"

// The training data: MNIST's 10,000 test images, if they are available, split in two.
const (
	trainPart, trainRecords = "train", 8000
	testPart, testRecords   = "test", 2000
)

// PrepareData creates the training data below dir, as mnist/train and mnist/test in RecordIO: from MNIST's IDX files in
// mnistDir, whose 10,000 test images it splits into 8,000 and 2,000, or from synthetic digits if mnistDir is "". It
// keeps existing data: both are deterministic.
func PrepareData(ctx context.Context, trainer, mnistDir, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("prepare the data: %w", err)
	}
	lock := flock.New(dir + ".lock") // against scenarios that begin at the same time
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return fmt.Errorf("prepare the data: lock %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	source := "synth"
	if mnistDir != "" {
		source = "convert"
	}
	for _, part := range []struct {
		name        string
		first, size int // records
		seed        string
	}{
		{trainPart, 0, trainRecords, "1"},
		{testPart, trainRecords, testRecords, "2"},
	} {
		target := filepath.Join(dir, "mnist", part.name)
		if _, err := os.Stat(target); err == nil {
			continue
		}
		partial := target + ".partial"
		if err := os.RemoveAll(partial); err != nil {
			return fmt.Errorf("prepare the data: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fmt.Errorf("prepare the data: %w", err)
		}
		args := []string{"data", source, "--records", strconv.Itoa(part.size), "--seed", part.seed, "--output", partial}
		if mnistDir != "" {
			records := fmt.Sprintf("%d:%d", part.first, part.first+part.size)
			args = []string{"data", source, mnistDir, "--part", records, "--output", partial}
		}
		if err := runCommand(ctx, trainer, args...); err != nil {
			return fmt.Errorf("prepare the data: %w", err)
		}
		if err := os.Rename(partial, target); err != nil {
			return fmt.Errorf("prepare the data: %w", err)
		}
	}
	return nil
}

// calibrate trains the tutorial's job twice for a few epochs, without a cluster, on the smaller part of the data.
func (s environment) calibrate(ctx context.Context) (calibration, error) {
	took := map[int]time.Duration{}
	for _, epochs := range []int{shortRunEpochs, longRunEpochs} {
		began := time.Now()
		if _, err := s.train(ctx, "calibrate", localRun{job: LowJob, part: testPart, epochs: epochs, gradsToWait: tutorialGradsToWait}, nil); err != nil {
			return calibration{}, err
		}
		took[epochs] = time.Since(began)
	}
	measured := newCalibration(took[shortRunEpochs], took[longRunEpochs])
	return calibration{epoch: measured.epoch * trainRecords / testRecords}, nil
}

// The tutorial's --grads_to_wait, and the steps of an epoch with its minibatches.
const (
	tutorialGradsToWait = 2
	tutorialMinibatch   = 10
	stepsPerEpoch       = trainRecords / tutorialMinibatch / tutorialGradsToWait
)

// localRun is a training job of the tutorial's model without a cluster.
type localRun struct {
	job         string
	part        string // of the data
	epochs      int
	gradsToWait int
}

// betweenReports is the time between two lines about a run without a cluster. Users see that it is alive.
const betweenReports = 5 * time.Second

// compareModel trains a job undisturbed, without a cluster, and records the hash of its model beside that of the
// cluster's model.
func (r *runner) compareModel(ctx context.Context, model string, job localRun) error {
	for _, summary := range eventlog.Replay(r.log.Events()).Summarize() {
		if summary.Job == job.job {
			r.logf("This takes at most about as long as %s trained in the cluster, %s.", job.job, wording.Duration(summary.Took))
		}
	}
	began := time.Now()
	reported := began
	undisturbed, err := r.train(ctx, "undisturbed", job, func(line string) {
		if time.Since(reported) >= betweenReports {
			reported = time.Now()
			r.logf("undisturbed: %s", line)
		}
	})
	if err != nil {
		return err
	}
	r.log.Add(eventlog.Event{Result: &eventlog.Result{
		Job: job.job, SHA256: model, UndisturbedSHA256: undisturbed, UndisturbedTook: time.Since(began),
	}})
	return nil
}

// train runs `elastic-trainer train` and returns the SHA-256 of its final model. It gives each line of progress to report,
// unless that is nil.
func (s environment) train(ctx context.Context, name string, job localRun, report func(line string)) (string, error) {
	output := filepath.Join(s.dir, name)
	// A run that finds its own finished output would do nothing.
	if err := os.RemoveAll(output); err != nil {
		return "", fmt.Errorf("train without a cluster: %w", err)
	}
	progress := &lines{report: func(line string) {
		if report != nil && strings.HasPrefix(line, "epoch ") {
			report(line)
		}
	}}
	err := runWithOutput(ctx, progress, s.tools.Trainer, "train",
		"--job_name", job.job,
		"--model_file", filepath.Join(s.examples, tutorialModel),
		"--train_data_dir", filepath.Join(s.dataDir, "mnist", job.part),
		"--validation_data_dir", filepath.Join(s.dataDir, "mnist", testPart),
		"--num_epoch", strconv.Itoa(job.epochs),
		"--minibatch_size", "10",
		"--record_per_task", "100",
		"--num_worker", "2",
		"--grads_to_wait", strconv.Itoa(job.gradsToWait),
		"--codec_type", "bytes",
		"--output", output)
	if err != nil {
		return "", fmt.Errorf("train without a cluster: %w", err)
	}
	return hashModel(output)
}

// hashModel is the SHA-256 of the one final model below a run's output directory.
func hashModel(output string) (string, error) {
	var found []string
	for _, pattern := range []string{modelFileName, filepath.Join("*", modelFileName)} {
		matches, err := filepath.Glob(filepath.Join(output, pattern))
		if err != nil {
			return "", fmt.Errorf("look for %s below %s: %w", modelFileName, output, err)
		}
		found = append(found, matches...)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("look for %s below %s: found %d of them", modelFileName, output, len(found))
	}
	model, err := os.ReadFile(found[0])
	if err != nil {
		return "", fmt.Errorf("the final model: %w", err)
	}
	sum := sha256.Sum256(model)
	return hex.EncodeToString(sum[:]), nil
}

// runCommand runs a command to its end. When the context ends, it sends SIGTERM, and SIGKILL after WaitDelay.
func runCommand(ctx context.Context, executable string, args ...string) error {
	return runWithOutput(ctx, io.Discard, executable, args...)
}

// runWithOutput is runCommand; what the program prints is also written to copied while it runs.
func runWithOutput(ctx context.Context, copied io.Writer, executable string, args ...string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, executable, args...)
	cmd.Stdout = io.MultiWriter(&output, copied)
	cmd.Stderr = cmd.Stdout // the same value: os/exec writes both from one goroutine
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		const tail = 2000
		text := bytes.TrimSpace(output.Bytes())
		if len(text) > tail {
			text = text[len(text)-tail:]
		}
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(executable), args, err, text)
	}
	return nil
}

// lines is a writer that reports each complete line.
type lines struct {
	report func(line string)
	begun  []byte // of the line that is not complete
}

func (l *lines) Write(b []byte) (int, error) {
	l.begun = append(l.begun, b...)
	for {
		line, rest, complete := bytes.Cut(l.begun, []byte("\n"))
		if !complete {
			return len(b), nil
		}
		l.report(string(line))
		l.begun = rest
	}
}
