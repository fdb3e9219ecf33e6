// Package checkpoint encodes the whole state of a run as a safetensors file. Its tensors are the variables with Keras'
// layout and names, moving statistics and optimizer slots, so any reader of the format can read the weights. The
// metadata contains the step, the lineage, loss and metrics of the last step, and a checksum of everything.
//
// A file that decodes is equal to the file that was encoded; a damaged file is an error. Other packages decide where
// files are stored, and from which one a run resumes.
package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/artifact/safetensors"
)

// Checkpoint is the state of a lineage after Step updates.
type Checkpoint struct {
	Lineage    string
	Step       int64
	Generation int64   // of the master that wrote it; of no effect
	LossSum    float64 // of the records of the last step
	Counts     []int64 // likewise, of the metrics
	Tensors    []safetensors.Tensor

	Evaluations []trainingjob.Measurement // of the states before this one
	Validation  string                    // digest of the data that these were made on; "" for none
}

// format is the version of what stands in the metadata.
const format = "elastic-trainer checkpoint 2"

// Keys of the metadata.
const (
	keyFormat      = "format"
	keyLineage     = "lineage"
	keyStep        = "step"
	keyGeneration  = "generation"
	keyLossSum     = "loss_sum"
	keyCounts      = "counts"
	keyEvaluations = "evaluations"
	keyValidation  = "validation"
	keySHA256      = "sha256"
)

// Is reports by a file's metadata whether it is meant to be a checkpoint, of this version or another one.
func Is(metadata map[string]string) bool {
	return strings.HasPrefix(metadata[keyFormat], "elastic-trainer checkpoint ")
}

// ErrDamaged is wrapped by the errors about a file that is not what was written.
var ErrDamaged = errors.New("the checkpoint is damaged")

// Encode returns the file. Equal checkpoints give equal bytes.
func Encode(c Checkpoint) ([]byte, error) {
	var file bytes.Buffer
	evaluations, err := json.Marshal(c.Evaluations)
	if err != nil {
		return nil, err
	}
	metadata := map[string]string{
		keyFormat:      format,
		keyLineage:     c.Lineage,
		keyStep:        strconv.FormatInt(c.Step, 10),
		keyGeneration:  strconv.FormatInt(c.Generation, 10),
		keyLossSum:     strconv.FormatFloat(c.LossSum, 'g', -1, 64),
		keyCounts:      joined(c.Counts),
		keyEvaluations: string(evaluations),
		keySHA256:      c.sum(evaluations),
	}
	if c.Validation != "" {
		metadata[keyValidation] = c.Validation
	}
	err = safetensors.Write(&file, c.Tensors, metadata)
	return file.Bytes(), err
}

// Decode reads a file. An error wraps ErrDamaged.
func Decode(file []byte) (Checkpoint, error) {
	c, err := decode(file)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, nil
}

func decode(file []byte) (c Checkpoint, err error) {
	tensors, metadata, err := safetensors.Read(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return c, err
	}
	if got := metadata[keyFormat]; got != format {
		return c, fmt.Errorf("its format is %q, and not %q", got, format)
	}
	c = Checkpoint{Lineage: metadata[keyLineage], Validation: metadata[keyValidation], Tensors: tensors}
	number := func(key string, parse func(string) error) {
		if e := parse(metadata[key]); e != nil {
			err = errors.Join(err, fmt.Errorf("metadata %q: %w", key, e))
		}
	}
	number(keyStep, func(s string) (e error) { c.Step, e = strconv.ParseInt(s, 10, 64); return e })
	number(keyGeneration, func(s string) (e error) { c.Generation, e = strconv.ParseInt(s, 10, 64); return e })
	number(keyLossSum, func(s string) (e error) { c.LossSum, e = strconv.ParseFloat(s, 64); return e })
	number(keyCounts, func(s string) (e error) { c.Counts, e = split(s); return e })
	number(keyEvaluations, func(s string) error { return json.Unmarshal([]byte(s), &c.Evaluations) })
	if err != nil {
		return c, err
	}
	if want, got := metadata[keySHA256], c.sum([]byte(metadata[keyEvaluations])); got != want {
		return c, fmt.Errorf("its content has SHA-256 %s, and the file says %s", got, want)
	}
	return c, nil
}

// sum is the SHA-256 over everything but the generation, by which equal states have equal sums. The evaluations are as
// the file has them.
func (c Checkpoint) sum(evaluations []byte) string {
	h := sha256.New()
	field := func(b []byte) {
		var length [8]byte
		binary.LittleEndian.PutUint64(length[:], uint64(len(b)))
		h.Write(length[:])
		h.Write(b)
	}
	field([]byte(c.Lineage))
	for _, n := range []uint64{uint64(c.Step), math.Float64bits(c.LossSum)} {
		field(binary.LittleEndian.AppendUint64(nil, n))
	}
	field([]byte(joined(c.Counts)))
	field(evaluations)
	if c.Validation != "" { // files from before it was kept are whole
		field([]byte(c.Validation))
	}
	for _, t := range c.Tensors {
		field([]byte(t.Name))
		field([]byte(t.DType))
		for _, d := range t.Shape {
			field(binary.LittleEndian.AppendUint64(nil, uint64(d)))
		}
		field(t.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// joined writes integers as "3,0,12".
func joined(counts []int64) string {
	var b strings.Builder
	for i, n := range counts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// split is the inverse of joined.
func split(text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	var counts []int64
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		counts = append(counts, n)
	}
	return counts, nil
}
