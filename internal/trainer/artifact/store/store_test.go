package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/inference"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

const job = "0123456789abcdef"

func still(context.Context) error { return nil }

func save(t *testing.T, d store.Directory, model string) []string {
	t.Helper()
	sum := sha256.Sum256([]byte(model))
	files, err := d.Save(t.Context(), []byte(model), master.ModelInfo{Job: job, SHA256: hex.EncodeToString(sum[:]), Steps: 3}, master.RunInfo{Generation: 1}, still)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestASavedJobIsFoundFinishedWithItsFiles(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	if info, err := d.Finished(job); info != nil || err != nil {
		t.Fatalf("before it was saved: %v, %v", info, err)
	}
	files := save(t, d, "weights")
	info, err := d.Finished(job)
	if err != nil || info == nil || info.Steps != 3 || strings.Join(info.Files, " ") != strings.Join(files, " ") {
		t.Fatalf("%+v, %v", info, err)
	}
	entries, err := os.ReadDir(d.Dir(job))
	if err != nil || len(entries) != 3 {
		t.Errorf("temporary files were left: %v %v", entries, err)
	}
}

func TestAnotherJobWithTheSameFirstDigitsIsNotFinished(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	save(t, d, "weights")
	if info, err := d.Finished(job[:8] + "ffffffff"); info != nil || err != nil {
		t.Errorf("%v, %v", info, err)
	}
}

func TestADamagedModelIsAnErrorThatNamesTheFileAndTheRemedy(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	files := save(t, d, "weights")
	if err := os.WriteFile(files[0], []byte("weighty"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := d.Finished(job)
	if err == nil || !strings.Contains(err.Error(), files[0]) || !strings.Contains(err.Error(), "train again") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Finished(job); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Errorf("%v", err)
	}
}

func TestAMasterThatIsNoLongerTheOneWritesNothing(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	lost := errors.New("another master has taken over")
	_, err := d.Save(t.Context(), []byte("weights"), master.ModelInfo{Job: job}, master.RunInfo{}, func(context.Context) error { return lost })
	if !errors.Is(err, lost) {
		t.Fatalf("%v", err)
	}
	if entries, err := os.ReadDir(d.Dir(job)); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestAnOutputThatCannotBeWrittenIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := store.Directory{Root: file}.Save(t.Context(), nil, master.ModelInfo{Job: job}, master.RunInfo{}, still)
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}

// FuzzFinished reads descriptions of models that anybody may have edited: they are of this job and of this very model,
// or they are refused.
func FuzzFinished(f *testing.F) {
	dir := store.Directory{Root: f.TempDir()}
	model := []byte("model")
	sum := sha256.Sum256(model)
	if _, err := dir.Save(f.Context(), model, master.ModelInfo{
		Job: job, SHA256: hex.EncodeToString(sum[:]), Metrics: map[string]float64{"accuracy": 0.5},
		Evaluations: []trainingjob.Measurement{{Step: 3, Records: 4, Loss: 0.5, Metrics: map[string]float64{"accuracy": 0.25}}},
	}, master.RunInfo{}, still); err != nil {
		f.Fatal(err)
	}
	description := filepath.Join(dir.Dir(job), store.InfoFile)
	saved, err := os.ReadFile(description)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(saved)
	f.Add([]byte(`{"job_digest":"0123456789abcdef","steps":1e400}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(description, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = inference.ReadDir(dir.Root)
		info, err := dir.Finished(job)
		if err != nil || info == nil {
			return
		}
		if info.Job != job || info.SHA256 != hex.EncodeToString(sum[:]) {
			t.Fatalf("%+v", info)
		}
		written, err := json.Marshal(info)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(description, written, 0o600); err != nil {
			t.Fatal(err)
		}
		if again, err := dir.Finished(job); err != nil || !equality.Semantic.DeepEqual(info, again) {
			t.Fatalf("%+v was written, and read as %+v (%v)", info, again, err)
		}
	})
}

// Others may write to a volume that jobs share.
func TestWhatIsWrittenFollowsNoLinkThatSomebodyPutThere(t *testing.T) {
	d := store.Directory{Root: t.TempDir(), KeepCheckpoints: 3}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := master.CheckpointName{Lineage: lineage, Step: 7, Job: job, Generation: 2}
	checkpoints := filepath.Join(d.Root, store.CheckpointsDir, lineage[:8])
	for _, dir := range []string{d.Dir(job), checkpoints} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	links := []string{ // the temporary names of older versions, which anybody could guess, and the final ones
		filepath.Join(d.Dir(job), ".model.safetensors.generation-1"), filepath.Join(d.Dir(job), store.ModelFile), filepath.Join(d.Dir(job), store.InfoFile),
		filepath.Join(checkpoints, ".step-000000000007.safetensors.job-01234567-generation-2"), filepath.Join(checkpoints, "step-000000000007.safetensors"),
	}
	for _, link := range links {
		if err := os.Symlink(victim, link); err != nil {
			t.Fatal(err)
		}
	}
	save(t, d, "other weights")
	if err := d.SaveCheckpoint(t.Context(), name, []byte("state"), still); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(victim); err != nil || string(content) != "precious" {
		t.Errorf("the file behind the links holds %q, %v", content, err)
	}
	for _, path := range []string{links[1], links[2], links[4]} {
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			t.Errorf("%s is %v, %v", path, info, err)
		}
	}
}

func TestAFileThatIsBeingWrittenIsForItsOwnerAlone(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	looked := false
	_, err := d.Save(t.Context(), []byte("weights"), master.ModelInfo{Job: job}, master.RunInfo{Generation: 1}, func(context.Context) error {
		entries, err := os.ReadDir(d.Dir(job))
		for _, e := range entries {
			if info, err := e.Info(); err != nil || strings.HasPrefix(e.Name(), ".") && info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
			}
			looked = looked || strings.HasPrefix(e.Name(), ".")
		}
		return err
	})
	if err != nil || !looked {
		t.Errorf("%v, looked: %t", err, looked)
	}
}

func TestAFinishedFileMayBeReadByOthers(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	for _, name := range save(t, d, "weights") {
		if info, err := os.Stat(filepath.Join(d.Dir(job), filepath.Base(name))); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
