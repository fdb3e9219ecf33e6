package forecast_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// said is a plan's forecast for one job, read from the output of terraform.
type printedForecast struct {
	text    string
	certain []string            // victims that it names: "seed-1/pod-2", "workload seed-1/job-low-1a2b3"
	either  []string            // victims among which the scheduler chooses
	spared  []string            // a victim that an equal choice spares
	perhaps map[string][]string // as starts, of pods that an equal choice lets wait
	starts  map[string][]string // by role, the nodes on which the pod may start
	waits   []string            // roles of pods that wait for room, or never run
	alike   map[string][]string // by role, those with which it may change places
	queued  bool                // its queue does not admit it
}

var (
	victimLine = regexp.MustCompile(`^  (?:evicts  |        or )(.+?) \(priority -?\d+\)`)
	startText  = regexp.MustCompile(`^(.+?) on (.+?) (immediately|after .+)$`)
	rowOfRoles = regexp.MustCompile(`^(\w+) (\d+) to (\d+)$`)
)

// parsePrinted finds a plan's forecast for a job.
func parsePrinted(t *testing.T, printed, job string) printedForecast {
	t.Helper()
	begin := strings.Index(printed, "Warning: "+job+" ")
	if begin < 0 {
		t.Fatalf("the plan has no forecast for %s:\n%s", job, printed)
	}
	text, _, complete := strings.Cut(printed[begin:], "nothing is reserved.")
	if !complete {
		t.Fatalf("the forecast has no end:\n%s", printed)
	}
	s := printedForecast{text: text, starts: map[string][]string{}, alike: map[string][]string{}, perhaps: map[string][]string{}}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if match := victimLine.FindStringSubmatch(line); match != nil {
			isEither := strings.HasPrefix(line, "          or ") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "          or ")
			switch {
			case strings.Contains(line, "(perhaps: "):
				s.spared = append(s.spared, match[1])
			case isEither:
				s.either = append(s.either, match[1])
			default:
				s.certain = append(s.certain, match[1])
			}
		}
		rest, isStarts := strings.CutPrefix(line, "  starts  ")
		for part := range strings.SplitSeq(rest, "; ") {
			if match := startText.FindStringSubmatch(part); isStarts && match != nil {
				for _, role := range roles(match[1]) {
					s.starts[role] = strings.Split(strings.TrimSuffix(match[2], " (tie)"), " or ")
				}
			}
		}
		if rest, ok := strings.CutPrefix(line, "  perhaps "); ok {
			text, _, _ := strings.Cut(rest, ", or it waits")
			if match := startText.FindStringSubmatch(text); match != nil {
				s.perhaps[match[1]] = strings.Split(strings.TrimSuffix(match[2], " (tie)"), " or ")
			}
		}
		if who, ok := strings.CutSuffix(line, " are interchangeable"); ok {
			row := roles(strings.TrimSpace(who))
			for _, role := range row {
				s.alike[role] = row
			}
		}
		for _, word := range []string{"  waits   ", "  never   ", "  then    "} {
			if rest, ok := strings.CutPrefix(line, word); ok {
				who, _, _ := strings.Cut(rest, ":")
				who, _, _ = strings.Cut(who, " fit")
				who, _, _ = strings.Cut(who, ", made when")
				s.waits = append(s.waits, roles(who)...)
			}
		}
		s.queued = s.queued || strings.HasPrefix(line, "  queue   waits in") || strings.HasPrefix(line, "  queue   is never")
	}
	if strings.Contains(text, "or none of them") {
		s.spared, s.either = append(s.spared, s.either...), nil
	}
	return s
}

// roles undoes how a text joins roles: "master and worker 0", "pod 0 to 3".
func roles(text string) []string {
	var found []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, " and ", ", "), ", ") {
		match := rowOfRoles.FindStringSubmatch(part)
		if match == nil {
			found = append(found, part)
			continue
		}
		first, _ := strconv.Atoi(match[2]) // digits, by the expression
		last, _ := strconv.Atoi(match[3])
		for i := first; i <= last; i++ {
			found = append(found, fmt.Sprintf("%s %d", match[1], i))
		}
	}
	return found
}

// differs describes how the actual result differs from all forecast ones; "" if it does not.
func (s printedForecast) differs(evicted []string, nodes map[string]string) string {
	var wrong []string
	for _, victim := range evicted {
		if !slices.Contains(s.certain, victim) && !slices.Contains(s.either, victim) && !slices.Contains(s.spared, victim) {
			wrong = append(wrong, fmt.Sprintf("%s was evicted, and was not named", victim))
		}
	}
	for _, victim := range s.certain {
		if !slices.Contains(evicted, victim) {
			wrong = append(wrong, fmt.Sprintf("%s was named, and was not evicted", victim))
		}
	}
	if len(s.either) > 0 && !slices.ContainsFunc(s.either, func(v string) bool { return slices.Contains(evicted, v) }) {
		wrong = append(wrong, fmt.Sprintf("none of %v was evicted", s.either))
	}
	return strings.Join(append(wrong, s.misplaced(nodes)...), "\n")
}

// misplaced are the pods on nodes that the forecast named neither for them nor for pods that they may exchange places
// with, and the pods that do not start though the forecast starts them.
func (s printedForecast) misplaced(nodes map[string]string) []string {
	var wrong []string
	rows := map[string]bool{}
	for _, role := range slices.Concat(slices.Sorted(maps.Keys(s.starts)), slices.Sorted(maps.Keys(s.perhaps))) {
		row := s.alike[role]
		if row == nil {
			row = []string{role}
		}
		if name := strings.Join(row, ", "); !rows[name] {
			rows[name] = true
			if !matches(s.placements(row), placesOf(row, nodes)) {
				wrong = append(wrong, fmt.Sprintf("%s: on %v, and %v was named", name, placesOf(row, nodes), s.placements(row)))
			}
		}
	}
	for role, node := range nodes {
		if s.starts[role] == nil && s.perhaps[role] == nil && s.alike[role] == nil {
			wrong = append(wrong, fmt.Sprintf("%s is on %s, and was not to start", role, node))
		}
	}
	return wrong
}

// placement is the nodes that the forecast named for a pod.
type placement struct {
	nodes   []string
	perhaps bool // it may wait as well
}

// placements are the forecast's nodes of each pod in the row that starts, or may start.
func (s printedForecast) placements(row []string) []placement {
	var all []placement
	for _, role := range row {
		if named := s.starts[role]; named != nil {
			all = append(all, placement{nodes: named})
		}
		if named := s.perhaps[role]; named != nil {
			all = append(all, placement{nodes: named, perhaps: true})
		}
	}
	return all
}

func placesOf(row []string, nodes map[string]string) []string {
	var places []string
	for _, role := range row {
		if nodes[role] != "" {
			places = append(places, nodes[role])
		}
	}
	return places
}

// matches reports whether every place matches a forecast placement of its own, and all others are only possible ones.
func matches(named []placement, places []string) bool {
	if len(places) == 0 {
		return !slices.ContainsFunc(named, func(p placement) bool { return !p.perhaps })
	}
	for i, p := range named {
		if slices.Contains(p.nodes, places[0]) && matches(slices.Delete(slices.Clone(named), i, i+1), places[1:]) {
			return true
		}
	}
	return false
}

func TestForecastsAreReadFromThePlansOutput(t *testing.T) {
	s := parsePrinted(t, `
Warning: ns/j will preempt

  with elastic_task.j,

  queue   admitted by ClusterQueue c with quota of f
  evicts  ns/a (priority 5) on n-1: it is lost: nothing recreates it
  evicts  ns/b (priority 5) on n-2: it is lost: nothing recreates it
          or ns/c (priority 5) on n-3: it is lost: nothing recreates it (tie)
  starts  master and worker 0 to 3 on n-1 immediately; worker 5 on n-2 or n-3 (tie) after its victim there has terminated (grace period 1s)
  waits   worker 6 and worker 7: n-1: Insufficient cpu
Based on the cluster state at 10:04:07Z; nothing is reserved.`, "ns/j")
	got := fmt.Sprint(s.certain, s.either, s.starts["master"], s.starts["worker 2"], s.starts["worker 5"], s.waits, s.queued)
	if want := "[ns/a] [ns/b ns/c] [n-1] [n-1] [n-2 n-3] [worker 6 worker 7] false"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	nodes := map[string]string{"master": "n-1", "worker 0": "n-1", "worker 1": "n-1", "worker 2": "n-1", "worker 3": "n-1", "worker 5": "n-3"}
	if wrong := s.differs([]string{"ns/a", "ns/c"}, nodes); wrong != "" {
		t.Error(wrong)
	}
	for behaviour, evicted := range map[string][]string{"a victim too few": {"ns/a"}, "one that is not named": {"ns/a", "ns/b", "ns/d"}, "the certain one spared": {"ns/b"}} {
		if s.differs(evicted, nodes) == "" {
			t.Errorf("%s is not noticed", behaviour)
		}
	}
	s.alike["worker 3"], s.alike["worker 5"] = []string{"worker 3", "worker 5"}, []string{"worker 3", "worker 5"}
	nodes["worker 3"], nodes["worker 5"] = "n-3", "n-1"
	if wrong := s.differs([]string{"ns/a", "ns/c"}, nodes); wrong != "" {
		t.Errorf("changed places: %s", wrong)
	}
	nodes["worker 5"] = "n-3"
	if s.differs([]string{"ns/a", "ns/c"}, nodes) == "" {
		t.Error("another node is not noticed")
	}
}
