package schedule

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEachEpochIsAPermutationOfTheRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Params{
			Seed:           rapid.Uint64().Draw(t, "seed"),
			Epochs:         rapid.IntRange(1, 3).Draw(t, "epochs"),
			MinibatchSize:  rapid.IntRange(1, 12).Draw(t, "minibatch size"),
			GradsToWait:    rapid.IntRange(1, 7).Draw(t, "grads to wait"),
			RecordsPerTask: rapid.IntRange(1, 40).Draw(t, "records per task"),
		}
		files := rapid.SliceOfN(rapid.Int64Range(0, 60), 1, 4).Draw(t, "files")
		s, err := New(p, files)
		total := int64(0)
		for _, n := range files {
			total += n
		}
		if total == 0 {
			if !errors.Is(err, ErrNoRecords) {
				t.Fatalf("no records: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		seen := make([]map[[2]int64]bool, p.Epochs)
		for i := range seen {
			seen[i] = map[[2]int64]bool{}
		}
		for step := range s.Steps() {
			st := s.Step(step)
			if st.Epoch != s.Epoch(step) || len(st.Minibatches) != s.Minibatches(step) || len(st.Minibatches) > p.GradsToWait {
				t.Fatalf("step %d: %+v", step, st)
			}
			if last := (step+1)%s.StepsPerEpoch() == 0; !last && len(st.Minibatches) != p.GradsToWait {
				t.Fatalf("step %d is not the epoch's last and has %d minibatches", step, len(st.Minibatches))
			}
			count := 0
			for _, m := range st.Minibatches {
				if len(m.Records) == 0 || len(m.Records) > p.MinibatchSize {
					t.Fatalf("a minibatch of %d records", len(m.Records))
				}
				for _, r := range m.Records {
					if r < m.Range.Lo || r >= m.Range.Hi {
						t.Fatalf("record %d outside of its range %+v", r, m.Range)
					}
					key := [2]int64{int64(m.Range.File), r}
					if seen[st.Epoch][key] {
						t.Fatalf("record %v twice in epoch %d", key, st.Epoch)
					}
					seen[st.Epoch][key] = true
					count++
				}
			}
			if count != st.Records {
				t.Fatalf("step %d says %d records and lists %d", step, st.Records, count)
			}
		}
		for epoch := range seen {
			if int64(len(seen[epoch])) != total {
				t.Fatalf("epoch %d has %d of %d records", epoch, len(seen[epoch]), total)
			}
		}
	})
}

func TestTheTutorialsNumbers(t *testing.T) {
	s, err := New(Params{Seed: 1, Epochs: 1, MinibatchSize: 10, GradsToWait: 2, RecordsPerTask: 100}, []int64{16384, 16384, 16384, 10848})
	if err != nil {
		t.Fatal(err)
	}
	if s.Ranges() != 601 || s.MinibatchesPerEpoch() != 6002 || s.Steps() != 3001 {
		t.Errorf("%d ranges, %d minibatches, %d steps; ElasticDL counts 601, 6002 and 3001", s.Ranges(), s.MinibatchesPerEpoch(), s.Steps())
	}
}

func TestRangesNeverSpanFiles(t *testing.T) {
	want := []Range{{0, 0, 3}, {0, 3, 6}, {0, 6, 9}, {0, 9, 10}, {1, 0, 3}, {1, 3, 6}, {1, 6, 9}, {1, 9, 10}}
	if got, err := Cut([]int64{10, 10}, 3); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestAStepDoesNotDependOnTheOrderOfRequests(t *testing.T) {
	p := Params{Seed: 7, Epochs: 4, MinibatchSize: 3, GradsToWait: 2, RecordsPerTask: 10}
	forward, _ := New(p, []int64{50})
	backward, _ := New(p, []int64{50})
	for step := forward.Steps() - 1; step >= 0; step-- {
		backward.Step(step)
	}
	for step := range forward.Steps() {
		if !reflect.DeepEqual(forward.Step(step), backward.Step(step)) {
			t.Fatalf("step %d differs", step)
		}
	}
}

func TestEpochsAndSeedsDiffer(t *testing.T) {
	p := Params{Seed: 1, Epochs: 2, MinibatchSize: 10, GradsToWait: 1, RecordsPerTask: 100}
	one, _ := New(p, []int64{1000})
	p.Seed = 2
	two, _ := New(p, []int64{1000})
	if reflect.DeepEqual(one.Step(0), one.Step(one.StepsPerEpoch())) || reflect.DeepEqual(one.Step(0), two.Step(0)) {
		t.Error("the order repeats")
	}
}

func TestASchedulesMemoryIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		recordsPerTask int
		files          []int64
		want           string
	}{
		"ranges that are too many": {1, []int64{5, 1 << 31}, "2,147,483,653 ranges, of which there may be at most 10,000,000; choose more records per task"},
		"ranges that are too long": {1_000_000_000, []int64{5, 1 << 31}, "a range of 1,000,000,000 records, which are shuffled together and may be at most 16,777,216; choose fewer records per task"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Params{Epochs: 1, MinibatchSize: 1_000_000, GradsToWait: 1, RecordsPerTask: c.recordsPerTask}, c.files)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; %q is wanted", err, c.want)
			}
		})
	}
	if _, err := New(Params{Epochs: 1, MinibatchSize: 1, GradsToWait: 1, RecordsPerTask: 1_000_000_000}, []int64{40}); err != nil {
		t.Errorf("few records in one range: %v", err)
	}
}
