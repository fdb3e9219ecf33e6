package checkpoint_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/checkpoint"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
)

func small() checkpoint.Checkpoint {
	return checkpoint.Checkpoint{
		Lineage: "5f1c", Step: 120, Generation: 3, LossSum: 12.3456789, Counts: []int64{17, 0, 3},
		Evaluations: []trainingjob.Measurement{{Step: 60, Loss: 0.25, Metrics: map[string]float64{"accuracy": 0.875, "auc": 1.0 / 3}, Records: 40}},
		Validation:  "b1946ac9",
		Tensors: []safetensors.Tensor{
			safetensors.Float32("conv2d/kernel", []int{2, 3}, []float32{1, -2, 3.5, 0, float32(math.Copysign(0, -1)), 1e-40}),
			safetensors.Float32("conv2d/bias", []int{3}, []float32{0.1, 0.2, 0.3}),
		},
	}
}

func encode(t testing.TB, c checkpoint.Checkpoint) []byte {
	t.Helper()
	file, err := checkpoint.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWhatIsDecodedIsWhatWasEncodedToTheBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := small()
		c.Validation = rapid.SampledFrom([]string{"", "b1946ac9"}).Draw(t, "validation")
		c.Step = rapid.Int64Range(0, math.MaxInt64).Draw(t, "step")
		c.LossSum = rapid.Float64().Draw(t, "loss")
		c.Tensors[1] = safetensors.Float32("conv2d/bias", []int{3}, rapid.SliceOfN(rapid.Float32(), 3, 3).Draw(t, "bias"))
		file, err := checkpoint.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := checkpoint.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(c, back) {
			t.Fatalf("%+v, and it was %+v", back, c)
		}
	})
}

func TestEveryDamageIsFound(t *testing.T) {
	file := encode(t, small())
	for at := range file {
		for _, flip := range []byte{0x01, 0x80} {
			damaged := bytes.Clone(file)
			damaged[at] ^= flip
			c, err := checkpoint.Decode(damaged)
			if err == nil {
				c.Generation = small().Generation // of no effect
				if !reflect.DeepEqual(c, small()) {
					t.Errorf("byte %d is another, and nothing was said", at)
				}
			} else if !errors.Is(err, checkpoint.ErrDamaged) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
	}
	for n := range file {
		if _, err := checkpoint.Decode(file[:n]); !errors.Is(err, checkpoint.ErrDamaged) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(file), err)
		}
	}
}

func FuzzDecodeNeverCrashesAndAcceptsOnlyWhatEncodeWrites(f *testing.F) {
	file := encode(f, small())
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := checkpoint.Decode(file)
		if err != nil {
			return
		}
		if back, err := checkpoint.Decode(encode(t, c)); err != nil || !reflect.DeepEqual(back, c) {
			t.Errorf("%+v was accepted, and comes back as %+v, %v", c, back, err)
		}
	})
}

// TestAReaderInPythonHasTheWeights reads a file with another implementation of the format, in another language.
func TestAReaderInPythonHasTheWeights(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	c := small()
	path := filepath.Join(t.TempDir(), "step.safetensors")
	if err := os.WriteFile(path, encode(t, c), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "testdata/read.py", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata map[string]string `json:"metadata"`
		Tensors  []struct {
			Name   string    `json:"name"`
			Shape  []int     `json:"shape"`
			Values []float64 `json:"values"`
		} `json:"tensors"`
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Tensors) != len(c.Tensors) || got.Metadata["step"] != "120" || got.Metadata["lineage"] != "5f1c" {
		t.Fatalf("it read %+v", got)
	}
	for i, want := range c.Tensors {
		values, err := want.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		read := got.Tensors[i]
		if read.Name != want.Name || !reflect.DeepEqual(read.Shape, want.Shape) || len(read.Values) != len(values) {
			t.Fatalf("it read %+v of %+v", read, want)
		}
		for j, v := range read.Values {
			if math.Float32bits(float32(v)) != math.Float32bits(values[j]) {
				t.Errorf("%s[%d] is %v, and it read %v", want.Name, j, values[j], v)
			}
		}
	}
}
