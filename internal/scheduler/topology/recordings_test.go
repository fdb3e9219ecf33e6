package topology

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/tas"
)

// answer is Kueue's result.
type answer struct {
	Placed  map[string][]domainOfPods            `json:"placed,omitempty"`
	Levels  []string                             `json:"levels,omitempty"`
	PodSet  string                               `json:"podSet,omitempty"`
	Reason  string                               `json:"reason,omitempty"`
	Encoded map[string]*kueue.TopologyAssignment `json:"encoded,omitempty"`
}

type recording struct {
	Seed      uint64    `json:"seed"`
	Situation situation `json:"situation"`
	Answer    answer    `json:"answer"`
}

// answerTo is what this package says.
func answerTo(s *situation) answer {
	placed, failure := s.capacity().Place(s.requests(), s.options())
	if failure != nil {
		return answer{PodSet: failure.PodSet, Reason: failure.Reason}
	}
	a := answer{Placed: map[string][]domainOfPods{}, Encoded: map[string]*kueue.TopologyAssignment{}}
	for name, assignment := range placed {
		a.Levels = assignment.Levels
		a.Placed[name] = []domainOfPods{}
		for _, d := range assignment.Domains {
			a.Placed[name] = append(a.Placed[name], domainOfPods(d))
		}
		a.Encoded[name] = tas.NewAssignment(assignment.Levels, assignment.Domains)
	}
	return a
}

// The recordings are of Kueue v0.19.2 itself: its FindTopologyAssignmentsForFlavor, called with drawn situations
// (draw_test.go). TOPOLOGY_RECORDINGS names another file of them, gzip or not.
func TestPlacesPodsWhereKueueDoes(t *testing.T) {
	path := "testdata/recordings.jsonl.gz"
	if other := os.Getenv("TOPOLOGY_RECORDINGS"); other != "" {
		path = other
	}
	file, err := os.Open(path) //nolint:gosec // a test's own input
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	if strings.HasSuffix(path, ".gz") {
		plain, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		lines = bufio.NewScanner(plain)
	}
	lines.Buffer(nil, 1<<24)
	total, places, different := 0, 0, 0
	for lines.Scan() {
		var r recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		total++
		if r.Answer.Reason == "" {
			places++
		}
		got := answerTo(&r.Situation)
		want := r.Answer
		if reflect.DeepEqual(normal(t, got), normal(t, want)) {
			continue
		}
		if different++; different <= 5 {
			s, _ := json.Marshal(r.Situation)
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			t.Errorf("seed %d: %s\n here %s\nKueue %s", r.Seed, s, g, w)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if total < 100 || places < total/4 || places > total*9/10 {
		t.Errorf("%d recordings, %d with a place: too few of a kind to show anything", total, places)
	}
	t.Logf("%d recordings, %d with a place, %d different", total, places, different)
}

// normal is an answer as it is after a round trip, so that nil and empty are equal.
func normal(t *testing.T, a answer) (n answer) {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// With TOPOLOGY_DRAW=FIRST,COUNT,FILE it writes situations for a recorder, one per line, instead of testing.
func TestDrawsSituationsForARecorder(t *testing.T) {
	spec := strings.Split(os.Getenv("TOPOLOGY_DRAW"), ",")
	if len(spec) != 3 {
		spec = []string{"1", "20", os.DevNull}
	}
	first, err := strconv.ParseUint(spec[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.ParseUint(spec[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(spec[2])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	e := json.NewEncoder(file)
	for seed := first; seed < first+count; seed++ {
		if err := e.Encode(newDrawer(seed).situation()); err != nil {
			t.Fatal(err)
		}
	}
}
