package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/wording"
)

// modelFileName is the final model's name, in ConfigMap NAME-model and below a run's output directory.
const modelFileName = "model.safetensors"

// The story's records: MNIST's 10,000 test images, where they are given, cut in two.
const (
	trainPart, trainRecords = "train", 8000
	testPart, testRecords   = "test", 2000
)

// PrepareData makes the story's records below dir, as mnist/train and mnist/test in RecordIO: from MNIST's IDX files
// in mnistDir, its 10,000 test images cut into 8,000 and 2,000, or from synthetic digits when mnistDir is "". What is
// there already is kept: both are deterministic.
func PrepareData(ctx context.Context, trainer, mnistDir, dir string) error {
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
		if err := run(ctx, trainer, args...); err != nil {
			return fmt.Errorf("prepare the data: %w", err)
		}
		if err := os.Rename(partial, target); err != nil {
			return fmt.Errorf("prepare the data: %w", err)
		}
	}
	return nil
}

// measurePace runs the tutorial's job twice for a few epochs, without a cluster, on the smaller part of the data.
func (s setting) measurePace(ctx context.Context) (pace, error) {
	took := map[int]time.Duration{}
	for _, epochs := range []int{shortRunEpochs, longRunEpochs} {
		began := time.Now()
		if _, err := s.train(ctx, "calibrate", localRun{job: LowJob, part: testPart, epochs: epochs, gradsToWait: tutorialGradsToWait}); err != nil {
			return pace{}, err
		}
		took[epochs] = time.Since(began)
	}
	measured := paceOf(took[shortRunEpochs], took[longRunEpochs])
	return pace{epoch: measured.epoch * trainRecords / testRecords}, nil
}

// tutorialGradsToWait is the tutorial's --grads_to_wait.
const tutorialGradsToWait = 2

// localRun is a training job of the tutorial's model without a cluster.
type localRun struct {
	job         string
	part        string // of the data
	epochs      int
	gradsToWait int
}

// compare trains a job undisturbed, without a cluster, and records its model's hash beside the one it had in the cluster.
func (t *telling) compare(ctx context.Context, model string, job localRun) error {
	for _, told := range eventlog.Replay(t.log.Events()).Summarize() {
		if told.Job == job.job {
			t.say("This is silent for about as long as %s trained in the cluster, %s, or less.", job.job, wording.Duration(told.Took))
		}
	}
	began := time.Now()
	undisturbed, err := t.train(ctx, "undisturbed", job)
	if err != nil {
		return err
	}
	t.log.Add(eventlog.Event{Result: &eventlog.Result{
		Job: job.job, SHA256: model, UndisturbedSHA256: undisturbed, UndisturbedTook: time.Since(began),
	}})
	return nil
}

// train runs `elastic-trainer train` and returns the SHA-256 of its final model.
func (s setting) train(ctx context.Context, name string, job localRun) (string, error) {
	output := filepath.Join(s.dir, name)
	// A run that finds its own finished output has nothing to do; this one is to be done.
	if err := os.RemoveAll(output); err != nil {
		return "", fmt.Errorf("train without a cluster: %w", err)
	}
	err := run(ctx, s.tools.Trainer, "train",
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

// run runs a command to its end; when the context ends the command is asked to stop, and killed after a while.
func run(ctx context.Context, executable string, args ...string) error {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, executable, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
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
