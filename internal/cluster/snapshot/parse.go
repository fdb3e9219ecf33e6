package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast/manifest"
)

// jsonStart matches the beginning of JSON; YAML that begins with a brace rarely has quotes there.
var jsonStart = regexp.MustCompile(`^\s*\{\s*["}]`)

// documentsOf are the documents of a file, in JSON.
func documentsOf(text []byte) iter.Seq2[[]byte, error] {
	if jsonStart.Match(text) {
		return jsonDocuments(text)
	}
	return func(yield func([]byte, error) bool) {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for number := 1; ; number++ {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				document, err = yaml.YAMLToJSONStrict(document)
			}
			if err != nil {
				err = fmt.Errorf("document %d: %w", number, err)
			}
			if !yield(document, err) || err != nil {
				return
			}
		}
	}
}

func jsonDocuments(text []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		documents := json.NewDecoder(bytes.NewReader(text))
		for {
			var document json.RawMessage
			err := documents.Decode(&document)
			if errors.Is(err, io.EOF) || !yield(document, err) || err != nil {
				return
			}
		}
	}
}

// parser collects the objects of a file.
type parser struct {
	snapshot *forecast.Snapshot
	queues   *forecast.Queues
	kinds    []kind
	seen     map[string]bool    // resources of which there are objects
	named    map[objectKey]bool // objects
	latest   time.Time          // of all timestamps

	index       *corev1.ConfigMap
	configMaps  map[types.NamespacedName]*corev1.ConfigMap
	deployments map[types.NamespacedName]*appsv1.Deployment
	runtimes    map[objectKey]*unstructured.Unstructured
}

func newParser() *parser {
	p := &parser{
		snapshot: &forecast.Snapshot{Jobs: map[types.NamespacedName]forecast.TrainingJob{}}, queues: &forecast.Queues{},
		seen: map[string]bool{}, named: map[objectKey]bool{}, configMaps: map[types.NamespacedName]*corev1.ConfigMap{},
		deployments: map[types.NamespacedName]*appsv1.Deployment{}, runtimes: map[objectKey]*unstructured.Unstructured{},
	}
	p.kinds = append(kindsOf(p.snapshot), queueKinds(p.queues)...)
	return p
}

// head is what all objects and lists have.
type head struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// document reads an object or a list.
func (p *parser) document(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 || string(text) == "null" {
		return nil
	}
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return fmt.Errorf("not a list of Kubernetes objects: %w", err)
	}
	of, isList := strings.CutSuffix(h.Kind, "List")
	switch {
	case h.Kind == "":
		return errors.New("not a list of Kubernetes objects: kind is missing")
	case !isList:
		return p.object(h, text)
	}
	for i, item := range h.Items {
		if err := p.item(item, metav1.TypeMeta{APIVersion: h.APIVersion, Kind: of}); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}

// item reads an item of a list. Those of `kubectl get --raw` have no kind of their own.
func (p *parser) item(text []byte, otherwise metav1.TypeMeta) error {
	var h head
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	if h.Kind == "" {
		h.TypeMeta = otherwise
	}
	switch {
	case h.Kind == "":
		return errors.New("kind is missing")
	case h.Items != nil:
		return errors.New("it is a list in a list")
	}
	return p.object(h, text)
}

// object reads one object.
func (p *parser) object(h head, text []byte) error {
	key := objectKey{h.GroupVersionKind().GroupKind().String(), h.Metadata.Namespace, h.Metadata.Name}
	err := p.take(h, text)
	if err == nil && p.named[key] {
		err = errors.New("it is in the file twice")
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", h.Kind, strings.TrimPrefix(key.namespace+"/"+key.name, "/"), err)
	}
	p.named[key] = true
	if at := latestIn(text); at.After(p.latest) {
		p.latest = at
	}
	return nil
}

// take keeps an object of a kind that forecasts read, and ignores others.
func (p *parser) take(h head, text []byte) error {
	name := types.NamespacedName{Namespace: h.Metadata.Namespace, Name: h.Metadata.Name}
	of := h.GroupVersionKind()
	switch of.GroupKind() {
	case schema.GroupKind{Kind: "ConfigMap"}:
		configMap := &corev1.ConfigMap{}
		if p.configMaps[name] = configMap; isIndex(name) {
			p.index = configMap
		}
		return json.Unmarshal(text, configMap)
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		p.deployments[name] = &appsv1.Deployment{}
		return json.Unmarshal(text, p.deployments[name])
	case schema.GroupKind{Group: manifest.TrainerGroup, Kind: "TrainingRuntime"}, schema.GroupKind{Group: manifest.TrainerGroup, Kind: "ClusterTrainingRuntime"}:
		object := &unstructured.Unstructured{}
		p.runtimes[objectKey{of.Kind, name.Namespace, name.Name}] = object
		return object.UnmarshalJSON(text)
	}
	for i := range p.kinds {
		if k := &p.kinds[i]; k.GroupKind() == of.GroupKind() {
			p.seen[k.resource()] = true
			return k.add(of.GroupVersion(), text)
		}
	}
	return nil
}

// stamp matches timestamps of the past; that of a deletion is of the future.
var stamp = regexp.MustCompile(`"(?:creationTimestamp|lastHeartbeatTime|lastTransitionTime|startTime|startedAt|finishedAt)"\s*:\s*"([0-9TZ:.+-]+)"`)

// latestIn is the latest timestamp of an object.
func latestIn(text []byte) (latest time.Time) {
	for _, match := range stamp.FindAllSubmatch(text, -1) {
		if at, err := time.Parse(time.RFC3339, string(match[1])); err == nil && at.After(latest) {
			latest = at
		}
	}
	return latest
}

// The parser is the source of single objects.

func (p *parser) configMap(_ context.Context, name types.NamespacedName) (*corev1.ConfigMap, error) {
	if found := p.configMaps[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name.Name)
}

func (p *parser) deployment(_ context.Context, name types.NamespacedName) (*appsv1.Deployment, error) {
	if found := p.deployments[name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(appsv1.Resource("deployments"), name.Name)
}

// readConfiguration reads Kueue's configuration. That of an index contains the feature gates of Kueue's Deployment.
func (p *parser) readConfiguration() error {
	q := p.queues
	if err := readConfiguration(context.Background(), p, q); err != nil {
		return err
	}
	switch deployment := (types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Deployment}); {
	case p.index != nil:
		q.ConfigurationUnread = p.index.Data[indexConfiguration]
	case q.ConfigurationUnread == "" && p.deployments[deployment] == nil:
		q.ConfigurationUnread = fmt.Sprintf("feature gates may be arguments of Deployment %s, which is %s", deployment, notInFile)
	}
	return nil
}

// readJobs reads the ConfigMaps of training jobs.
func (p *parser) readJobs() {
	for name, configMap := range p.configMaps {
		job, named := strings.CutSuffix(name.Name, trainingjob.ConfigMapName(""))
		if _, defined := configMap.Data[trainingjob.WorkersKey]; !named || !defined {
			continue
		}
		name.Name = job
		if details, found, _ := readJob(context.Background(), p, name); found { // a file has no errors but that it is not there
			p.snapshot.Jobs[name] = details
		}
	}
}
