package master_test

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/coordinator"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/runtime/job"
)

// tableFile is a model with one table of that many rows of eight floats.
const tableFile = `
import tensorflow as tf

def custom_model():
    ids = tf.keras.Input(shape=(10,), dtype="int64")
    x = tf.keras.layers.Flatten()(tf.keras.layers.Embedding(%d, 8)(ids))
    return tf.keras.Model(ids, tf.keras.layers.Dense(1)(x))

def loss(labels, predictions):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=tf.cast(tf.reshape(labels, [-1]), tf.float32), logits=tf.reshape(predictions, [-1])))

def optimizer(lr=0.1):
    return tf.optimizers.SGD(lr)

def feed(dataset, mode, metadata):
    def parse(record):
        r = tf.io.parse_single_example(
            record, {"feature": tf.io.FixedLenFeature([10], tf.int64), "label": tf.io.FixedLenFeature([1], tf.int64)})
        return r["feature"], r["label"]
    return dataset.map(parse)
`

func TestOnlyTheRowsThatAStepTouchesAreSentWhateverTheTablesSize(t *testing.T) {
	const width = 8
	for _, rows := range []int{5383, 300_000} {
		t.Run(fmt.Sprintf("a table of %d rows", rows), func(t *testing.T) {
			s := &site{T: t, lost: make(chan string, 1), model: fmt.Appendf(nil, tableFile, rows), options: job.Options{Threads: 1, Kernel: "portable"}}
			s.spec = trainingjob.Job{
				Name: "table", Namespace: "default", Model: trainingjob.Model{File: "model.py"},
				Data:     trainingjob.Data{Training: data.Synthetic("frappe", 1200, 1), RecordsPerTask: 50},
				Training: trainingjob.Training{Epochs: 1, MinibatchSize: 10, GradsToWait: virtualWorkers, Seed: 1},
			}
			s.prepare()
			listener := &counted{Listener: s.config.Listener}
			s.config.Listener = listener
			if r := s.run(t.Context()); r.Code != coordinator.ExitDone {
				t.Fatalf("the master ended with %d: %s", r.Code, r.Reason)
			}
			// One worker sends each step's sum, and gets it back as the update.
			want := int64(0)
			for _, touched := range s.touched() {
				want += 2 * 4 * int64(s.job.Network.TrainableSize()+touched*(1+width))
			}
			if got := listener.bytes.Load(); got < want || got > want+want/20+64<<10 {
				t.Errorf("%d bytes for gradients and updates of %d", got, want)
			}
		})
	}
}

// touched is how many rows each step of the job looks up.
func (s *site) touched() []int {
	s.Helper()
	batcher, err := data.NewBatcher(s.job.Training, s.job.Graph.Feed, s.spec.Training.MinibatchSize)
	if err != nil {
		s.Fatal(err)
	}
	var all []int
	var batch graph.Batch
	for step := range s.job.Schedule.Steps() {
		rows := map[int32]bool{}
		for _, m := range s.job.Schedule.Step(step).Minibatches {
			if err := batcher.Fill(s.Context(), m.Range.File, m.Records, &batch); err != nil {
				s.Fatal(err)
			}
			for _, id := range batch.Integers[0] {
				rows[id] = true
			}
		}
		all = append(all, len(rows))
	}
	return all
}

// counted counts the bytes of its connections in both directions.
type counted struct {
	net.Listener
	bytes atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l}, err
}

type countedConn struct {
	net.Conn
	listener *counted
}

func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.listener.bytes.Add(int64(n))
	return n, err
}

func (c countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.listener.bytes.Add(int64(n))
	return n, err
}
