package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/store"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/master"
)

const lineage = "11aa22bb33cc44dd"

func saveCheckpoint(t *testing.T, d store.Directory, lineage string, step int64, content string) {
	t.Helper()
	name := master.CheckpointName{Lineage: lineage, Step: step, Job: job, Generation: 2}
	if err := d.SaveCheckpoint(t.Context(), name, []byte(content), still); err != nil {
		t.Fatal(err)
	}
}

func steps(t *testing.T, d store.Directory, lineage string) (steps []int64) {
	t.Helper()
	stored, err := d.Checkpoints(lineage)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stored {
		steps = append(steps, s.Step)
	}
	return steps
}

func TestTheNewestCheckpointsOfALineageAreKept(t *testing.T) {
	d := store.Directory{Root: t.TempDir(), KeepCheckpoints: 2}
	for _, step := range []int64{9, 10, 100} {
		saveCheckpoint(t, d, lineage, step, "state")
	}
	other := "99" + lineage
	saveCheckpoint(t, d, other, 5, "another lineage's")
	if got := steps(t, d, lineage); !slices.Equal(got, []int64{10, 100}) {
		t.Errorf("there are the steps %v", got)
	}
	if got := steps(t, d, other); !slices.Equal(got, []int64{5}) {
		t.Errorf("of the other lineage there are the steps %v", got)
	}
	// A job with fewer epochs leaves those alone that one with more has written.
	saveCheckpoint(t, d, lineage, 50, "state")
	if got := steps(t, d, lineage); !slices.Equal(got, []int64{10, 50, 100}) {
		t.Errorf("there are the steps %v", got)
	}
	d.KeepCheckpoints = 0
	saveCheckpoint(t, d, lineage, 200, "state")
	if got := steps(t, d, lineage); !slices.Equal(got, []int64{10, 50, 100, 200}) {
		t.Errorf("there are the steps %v", got)
	}
}

func TestACheckpointIsWholeOrNotThere(t *testing.T) {
	d := store.Directory{CheckpointRoot: t.TempDir()}
	saveCheckpoint(t, d, lineage, 7, "the state of step 7")
	taken := errors.New("another master has taken over")
	name := master.CheckpointName{Lineage: lineage, Step: 8, Job: job}
	if err := d.SaveCheckpoint(t.Context(), name, []byte("late"), func(context.Context) error { return taken }); !errors.Is(err, taken) {
		t.Errorf("a master whose time is over: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(d.CheckpointRoot, lineage[:8]))
	if err != nil || len(entries) != 1 {
		t.Fatalf("there are %v, %v", entries, err)
	}
	stored, err := d.Checkpoints(lineage)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := stored[0].Read(); err != nil || string(content) != "the state of step 7" || !strings.HasSuffix(stored[0].Path, ".safetensors") {
		t.Errorf("%s holds %q, %v", stored[0].Path, content, err)
	}
	if none, err := d.Checkpoints("00" + lineage); err != nil || len(none) > 0 {
		t.Errorf("of a lineage without any there are %v, %v", none, err)
	}
}

func TestTheNewestTrustedCheckpointIsKeptHoweverManyThereAre(t *testing.T) {
	d := store.Directory{Root: t.TempDir(), KeepCheckpoints: 2}
	for step := int64(10); step <= 60; step += 10 {
		name := master.CheckpointName{Lineage: lineage, Step: step, Job: job, Generation: 2, Trusted: 25}
		if err := d.SaveCheckpoint(t.Context(), name, []byte("state"), still); err != nil {
			t.Fatal(err)
		}
	}
	if got := steps(t, d, lineage); !slices.Equal(got, []int64{20, 50, 60}) {
		t.Errorf("there are the steps %v", got)
	}
}

func TestAWithdrawnCheckpointIsKeptUnderANameThatNobodyGoesOnFrom(t *testing.T) {
	d := store.Directory{Root: t.TempDir()}
	for _, step := range []int64{10, 20, 30} {
		saveCheckpoint(t, d, lineage, step, "state")
	}
	paths, err := d.WithdrawCheckpoints(t.Context(), lineage, []int64{15, 20, 30}) // that of step 15 has been removed before
	if err != nil || len(paths) != 2 || !strings.HasSuffix(paths[1], "step-000000000030.safetensors") {
		t.Errorf("%v were withdrawn: %v", paths, err)
	}
	if got := steps(t, d, lineage); !slices.Equal(got, []int64{10}) {
		t.Errorf("there are the steps %v", got)
	}
	if kept, _ := filepath.Glob(filepath.Join(d.Root, store.CheckpointsDir, "*", "withdrawn-*")); len(kept) != 2 {
		t.Errorf("of those withdrawn there are %v", kept)
	}
}
