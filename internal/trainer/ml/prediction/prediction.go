// Package prediction writes the predictions of a model, one line for each record, in named columns: as CSV with a
// header, or as JSON lines. The lines are in the order of the records, numbers can be read back to the same bits, and
// memory use does not depend on the number of records. Its callers read the records and run the network.
package prediction

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/kernel"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/metric"
)

// The formats of lines.
const (
	CSV   = "csv"
	JSONL = "jsonl"
)

// Formats are those of lines.
func Formats() []string { return []string{CSV, JSONL} }

// Options of a Writer.
type Options struct {
	Format string
	// Logits are written instead of probabilities: the output layer's values as they are.
	Logits bool
	// Labels are written beside the answers.
	Labels bool
}

// Writer writes lines. Close it to have them all written.
type Writer struct {
	out     *bufio.Writer
	options Options
	answer  answer
	record  int64
	line    []byte
	values  []float32
}

// answer is what a model's output means.
type answer struct {
	classes int    // outputs that are one for each class; 0: there is one output
	yes     bool   // the one output is of a yes, and not a number to be hit
	already bool   // the output layer's values are probabilities
	name    string // of the values
}

func answerOf(m *graph.Model, logits bool) answer {
	output := m.Nodes[m.Output]
	a := answer{name: "probability", already: output.Op == graph.Softmax || output.Op == graph.Sigmoid}
	switch m.Loss {
	case graph.SparseSoftmaxCrossEntropy:
		a.classes = output.Shape[0]
	case graph.MeanSquaredError:
		a.name = "value"
		return a
	default:
		a.yes = true
	}
	if logits {
		a.name = "logit"
	}
	return a
}

// NewWriter begins with the header, where the format has one.
func NewWriter(out io.Writer, m *graph.Model, o Options) (*Writer, error) {
	w := &Writer{out: bufio.NewWriterSize(out, 64<<10), options: o, answer: answerOf(m, o.Logits)}
	w.values = make([]float32, max(1, w.answer.classes))
	if o.Format == CSV {
		w.header()
	}
	return w, w.flushLine()
}

func (w *Writer) header() {
	w.line = append(w.line, "record"...)
	if w.options.Labels {
		w.line = append(w.line, ",label"...)
	}
	if w.answer.classes > 0 || w.answer.yes {
		w.line = append(w.line, ",class"...)
	}
	for c := range w.values {
		w.line = append(w.line, ","+w.answer.name...)
		if w.answer.classes > 0 {
			w.line = strconv.AppendInt(append(w.line, '_'), int64(c), 10)
		}
	}
	w.line = append(w.line, '\n')
}

// Write writes the lines of a minibatch's records; output is the network's.
func (w *Writer) Write(b *graph.Batch, output []float32) error {
	size := len(w.values)
	if len(output) != b.N*size {
		return fmt.Errorf("%d values for %d records with %d outputs", len(output), b.N, size)
	}
	for r := range b.N {
		z := output[r*size:][:size]
		class := w.class(z)
		w.probabilities(z)
		if w.options.Format == CSV {
			w.csv(b, r, class)
		} else {
			w.json(b, r, class)
		}
		w.record++
		if err := w.flushLine(); err != nil {
			return err
		}
	}
	return nil
}

// class is the answer as a class number, as accuracies have it.
func (w *Writer) class(z []float32) int {
	if w.answer.classes == 0 {
		threshold := float32(0)
		if w.answer.already {
			threshold = 0.5
		}
		if z[0] > threshold {
			return 1
		}
		return 0
	}
	return metric.Largest(z)
}

// probabilities fills values: the softmax or the sigmoid of the outputs in float64, rounded once, or what they are.
func (w *Writer) probabilities(z []float32) {
	copy(w.values, z)
	switch {
	case w.options.Logits || w.answer.already || w.answer.classes == 0 && !w.answer.yes:
	case w.answer.classes == 0:
		w.values[0] = float32(kernel.Sigmoid(float64(z[0])))
	default:
		largest := float64(z[w.class(z)])
		sum := 0.0
		for _, v := range z {
			sum += kernel.Exp(float64(v) - largest)
		}
		for c, v := range z {
			w.values[c] = float32(kernel.Exp(float64(v)-largest) / sum)
		}
	}
}

func (w *Writer) csv(b *graph.Batch, r, class int) {
	w.line = strconv.AppendInt(w.line, w.record, 10)
	if w.options.Labels {
		w.line = appendLabel(append(w.line, ','), b, r)
	}
	if w.answer.classes > 0 || w.answer.yes {
		w.line = strconv.AppendInt(append(w.line, ','), int64(class), 10)
	}
	for _, v := range w.values {
		w.line = appendFloat(append(w.line, ','), v)
	}
	w.line = append(w.line, '\n')
}

var plurals = map[string]string{"probability": "probabilities", "logit": "logits"}

func (w *Writer) json(b *graph.Batch, r, class int) {
	w.line = strconv.AppendInt(append(w.line, `{"record":`...), w.record, 10)
	if w.options.Labels {
		w.line = appendLabel(append(w.line, `,"label":`...), b, r)
	}
	if w.answer.classes > 0 || w.answer.yes {
		w.line = strconv.AppendInt(append(w.line, `,"class":`...), int64(class), 10)
	}
	if w.answer.classes == 0 {
		w.line = appendFloat(append(w.line, `,"`+w.answer.name+`":`...), w.values[0])
	} else {
		w.line = append(w.line, `,"`+plurals[w.answer.name]+`":[`...)
		for c, v := range w.values {
			if c > 0 {
				w.line = append(w.line, ',')
			}
			w.line = appendFloat(w.line, v)
		}
		w.line = append(w.line, ']')
	}
	w.line = append(w.line, '}', '\n')
}

func appendLabel(line []byte, b *graph.Batch, r int) []byte {
	if len(b.Targets) > 0 {
		return appendFloat(line, b.Targets[r])
	}
	return strconv.AppendInt(line, int64(b.Labels[r]), 10)
}

// appendFloat writes the shortest number that reads back as the same float32.
func appendFloat(line []byte, v float32) []byte {
	return strconv.AppendFloat(line, float64(v), 'g', -1, 32)
}

func (w *Writer) flushLine() error {
	_, err := w.out.Write(w.line)
	w.line = w.line[:0]
	return err
}

// Close writes what is still buffered; what it writes to stays open.
func (w *Writer) Close() error { return w.out.Flush() }
