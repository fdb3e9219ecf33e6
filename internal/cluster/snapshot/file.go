// Package snapshot reads a cluster for a forecast, with few cheap requests, all at the same time: one LIST for each
// kind of object, answered from the API server's cache, without pods that have ended. Its error names every missing
// permission that a forecast requires. Package forecast interprets the objects.
package snapshot

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// A snapshot file is a list of Kubernetes objects in JSON or YAML, in any number of documents, as `kubectl get -o yaml`
// prints one; it may be compressed with gzip. What Write has written begins with an index, a ConfigMap that says when
// the cluster was read, and which kinds could be read. Without an index, a kind without objects counts as not read.
const (
	indexName = "elastic-sim-snapshot"

	indexTime          = "asOf"          // RFC 3339
	indexVersion       = "serverVersion" // of the API server, "v1.36.1"
	indexKinds         = "kinds"         // those that were read, by their resources: "nodes pods jobs.batch"
	indexDenied        = "denied"        // those that the account may not list
	indexConfiguration = "kueueConfigurationUnknown"
)

// notInFile is why a kind could not be read that a file does not have.
const notInFile = "not in the snapshot"

// maxFileBytes limits a file without its compression, to about that of 10,000 nodes and 100,000 pods.
const maxFileBytes = 1 << 30

// File is the content of a snapshot file.
type File struct {
	*forecast.Snapshot
	runtimes map[objectKey]*unstructured.Unstructured // of Kubeflow Trainer
}

// objectKey names an object in a file; a cluster-wide one has no namespace.
type objectKey struct{ kind, namespace, name string }

// Open reads a snapshot file. A forecast from it is for the time asOf; if that is zero, for the time that the file says,
// or the latest timestamp of its objects.
func Open(path string, asOf time.Time) (*File, error) {
	in, err := os.Open(path) //nolint:gosec // the user's own choice
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	defer in.Close()
	f, err := Parse(in, asOf)
	if err != nil {
		return nil, fmt.Errorf("snapshot %s: %w", path, err)
	}
	return f, nil
}

// Parse is Open for the content of a file, which may come from anywhere.
func Parse(in io.Reader, asOf time.Time) (*File, error) {
	text, err := decompressed(in)
	if err != nil {
		return nil, err
	}
	p := newParser()
	for document, err := range documentsOf(text) {
		if err == nil {
			err = p.document(document)
		}
		if err != nil {
			return nil, err
		}
	}
	return p.finish(asOf)
}

// decompressed is the text of a file.
func decompressed(in io.Reader) ([]byte, error) {
	buffered := bufio.NewReader(in)
	in = buffered
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		in = unzipped
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("it has more than %d MiB", maxFileBytes>>20)
	}
	return text, err
}

// finish is the file after its last document.
func (p *parser) finish(asOf time.Time) (*File, error) {
	s := p.snapshot
	if p.index == nil && len(s.Nodes) == 0 {
		return nil, errors.New("there are no nodes in it; write it with `elastic-sim snapshot`, or `kubectl get nodes,pods,… -A -o yaml`")
	}
	s.AsOf, s.Version = p.latest, "unknown"
	if err := p.readIndex(); err != nil {
		return nil, err
	}
	if !asOf.IsZero() {
		s.AsOf = asOf
	}
	p.noteKinds()
	if err := p.readConfiguration(); err != nil {
		return nil, err
	}
	p.readJobs()
	return &File{s, p.runtimes}, nil
}

// readIndex takes what the index says about the whole cluster.
func (p *parser) readIndex() error {
	if p.index == nil {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, p.index.Data[indexTime])
	if err != nil {
		return fmt.Errorf("ConfigMap %s, %s: %w", indexName, indexTime, err)
	}
	p.snapshot.AsOf, p.snapshot.Version = at, p.index.Data[indexVersion]
	return nil
}

// noteKinds notes which kinds were read, and which could not be.
func (p *parser) noteKinds() {
	s := p.snapshot
	read, denied := p.seen, map[string]bool{}
	if p.index != nil {
		read, denied = words(p.index.Data[indexKinds]), words(p.index.Data[indexDenied])
	}
	if slices.ContainsFunc(p.kinds, func(k kind) bool { return k.ofKueue() && read[k.resource()] }) {
		s.Queues = p.queues
	}
	for i := range p.kinds {
		k := &p.kinds[i]
		verb := notInFile
		if denied[k.resource()] {
			verb = k.verb()
		}
		switch {
		case read[k.resource()]:
			k.begin()
		case k.ofKueue() && s.Queues == nil && p.index != nil: // the cluster has no Kueue
		case k.Kind == string(forecast.Topologies):
			p.queues.TopologiesUnread = verb
		case p.mayMatter(k):
			s.Unread = append(s.Unread, k.unread(verb))
		}
	}
	slices.SortStableFunc(s.Unread, func(a, b forecast.Unread) int { return strings.Compare(a.Verb, b.Verb) })
}

// mayMatter reports whether there may be objects of a kind that is not in the file. Some of Kueue's are named by others.
func (p *parser) mayMatter(k *kind) bool {
	switch k.Kind {
	case "Cohort":
		return slices.ContainsFunc(p.queues.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Spec.CohortName != "" })
	case "AdmissionCheck":
		return slices.ContainsFunc(p.queues.ClusterQueues, func(q *kueue.ClusterQueue) bool { return q.Spec.AdmissionChecksStrategy != nil })
	}
	return true
}

// words are those of a list in an index.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// Runtime is a TrainingRuntime of Kubeflow Trainer, or a ClusterTrainingRuntime, which has no namespace.
func (f *File) Runtime(kind, namespace, name string) (*unstructured.Unstructured, error) {
	if object := f.runtimes[objectKey{kind, namespace, name}]; object != nil {
		return object, nil
	}
	return nil, errors.New(notInFile)
}

// isIndex reports whether a ConfigMap is the index of a file.
func isIndex(name types.NamespacedName) bool {
	return name == types.NamespacedName{Name: indexName}
}
