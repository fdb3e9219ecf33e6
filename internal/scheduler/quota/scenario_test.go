package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/configuration"
)

// TestTheEngineDecidesAsInTheScenarios plays testdata/*.txt, a scenario for each rule; -rewrite writes them anew.
//
//	flavor NAME [label=KEY:VALUE] [taint=KEY]
//	cohort NAME [parent=NAME] [quota=…]
//	queue NAME quota=FLAVOR:RESOURCE:NOMINAL[:BORROW[:LEND]],… [cohort=] [strict] [within=] [reclaim=] [borrow=] [threshold=] [borrowing=] [preempting=] [prefer=] [weight=] [stop=] [usage] [check=NAME]
//	local NAME [queue=] [weight=] [stop=]
//	workload NAME [queue=] [priority=] [count=] [min=] [RESOURCE=…] [select=KEY:VALUE] [tolerate=KEY] [replaces=NAME] [inactive]: then everything runs to rest
//	fair or usages halflife= interval= [cpu=WEIGHT] (before everything else)
//	finish NAME, delete NAME, ready NAME (its admission checks), wait SECONDS, pending QUEUE, usage QUEUE, why NAME, explain NAME, whatif NAME … (as workload)
//
// Each answers with the decisions that were made. Every command is a second later than the one before.
func TestTheEngineDecidesAsInTheScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &scenario{t: t, engine: New(Config{}), specs: map[string]Workload{}, decided: map[string]Decision{}}
		datadriven.RunTest(t, path, s.run)
	})
}

type scenario struct {
	t       *testing.T
	engine  *Engine
	now     int
	specs   map[string]Workload
	decided map[string]Decision
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	a := arguments{d}
	name := a.name()
	if passed := s.pass(1); passed != "" {
		t.Fatalf("%s: before it, %s", d.Pos, passed)
	}
	switch d.Cmd {
	case "fair":
		s.engine = New(Config{FairSharing: &FairSharing{}})
		return ""
	case "usages":
		s.engine = New(Config{AdmissionFairSharing: a.usages(t)})
		return ""
	case "wait":
		seconds, err := strconv.Atoi(name)
		if err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		return s.pass(seconds)
	case "ready":
		s.engine.ChecksReady(in(name))
	case "flavor":
		s.engine.SetFlavor(name, a.flavor())
	case "cohort":
		s.engine.SetCohort(name, kueue.CohortSpec{ParentName: kueue.CohortReference(a.text("parent")), ResourceGroups: a.quota(t), FairSharing: a.weight()})
	case "queue":
		if check := a.text("check"); check != "" {
			s.engine.SetAdmissionCheck(check, true)
		}
		if err := s.engine.SetClusterQueue(name, a.queue(t)); err != nil {
			return err.Error()
		}
		s.engine.SetLocalQueue(in(name), kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(name)})
	case "local":
		stop := kueue.StopPolicy(cmp.Or(a.text("stop"), string(kueue.None)))
		queue := kueue.ClusterQueueReference(cmp.Or(a.text("queue"), name))
		s.engine.SetLocalQueue(in(name), kueue.LocalQueueSpec{ClusterQueue: queue, StopPolicy: &stop, FairSharing: a.weight()})
	case "workload":
		s.specs[name] = a.workload(t, name, s.at())
		s.engine.SetWorkload(s.specs[name])
	case "finish":
		s.engine.Finish(in(name))
	case "delete":
		s.engine.DeleteWorkload(in(name))
	case "pending":
		return lines(s.engine.Pending(name), func(n types.NamespacedName) string { return n.Name })
	case "usage":
		return lines(s.engine.Usage(name), func(u FlavorUsage) string {
			return fmt.Sprintf("%s %s: %s of %s, %s borrowed", u.Flavor, u.Resource, &u.Reserved, &u.Nominal, &u.Borrowed)
		})
	case "why":
		why := s.engine.Why(in(name))
		ahead, _ := s.engine.Position(in(name))
		return fmt.Sprintf("%s %s, behind %d: %s\n", why.Reason, why.Cause, ahead, why.Message)
	case "explain":
		return explained(s.decided[name].Why)
	case "whatif":
		answer := s.engine.WhatIf(a.workload(t, name, s.at()), s.at())
		return answer.Text() + "\n"
	default:
		t.Fatalf("%s: there is no command %q", d.Pos, d.Cmd)
	}
	return s.rest()
}

func (s *scenario) at() time.Time { return start.Add(time.Duration(s.now) * time.Second) }

// pass lets time pass, and returns the decisions.
func (s *scenario) pass(seconds int) (decided string) {
	until := s.now + seconds
	for {
		at, due := s.engine.SampleAt()
		if s.now = int(at.Sub(start) / time.Second); !due || s.now > until {
			s.now = until
			return decided
		}
		decided += s.rest()
	}
}

// rest runs cycles until nothing changes, and returns the decisions.
func (s *scenario) rest() string {
	var b strings.Builder
	for range 10_000 {
		r := s.engine.Cycle(s.at())
		for _, d := range r.Decisions {
			if d.Kind != Admit || s.decided[d.Workload.Name].Kind != Preempt { // its victims are what is to be explained
				s.decided[d.Workload.Name] = d
			}
			switch d.Kind {
			case Admit:
				fmt.Fprintf(&b, "%s is admitted in %s: %s%s\n", d.Workload.Name, d.ClusterQueue, flavorsText(d.Admission), borrowed(d.Borrows))
				if d.Replaced != nil {
					fmt.Fprintf(&b, "%s has taken over the quota of %s\n", d.Workload.Name, d.Replaced.Name)
				}
			case Preempt:
				for _, t := range d.Targets {
					fmt.Fprintf(&b, "%s evicts %s: %s\n", d.Workload.Name, t.Workload.Name, t.Reason)
					s.engine.Release(t.Workload)
				}
			case Evict:
				fmt.Fprintf(&b, "%s is evicted: %s\n", d.Workload.Name, d.Reason)
				s.engine.Release(d.Workload)
			case Wait:
				fmt.Fprintf(&b, "%s waits, %s: %s\n", d.Workload.Name, d.Cause, d.Message)
			}
		}
		if r.Settled {
			at, more := s.engine.RequeueAt()
			if !more {
				return b.String()
			}
			s.engine.Requeue(at)
		}
	}
	s.t.Fatal("the engine does not come to rest")
	return ""
}

func borrowed(height int) string {
	if height == 0 {
		return ""
	}
	return fmt.Sprintf(", borrowing %d up", height)
}

func explained(x Explanation) string {
	var b strings.Builder
	for _, f := range x.Flavors {
		fmt.Fprintf(&b, "%s for %s: %s", f.Flavor, strings.Join(f.PodSets, "+"), f.Result)
		if f.Chosen {
			b.WriteString(", chosen")
		}
		for _, r := range f.Reasons {
			b.WriteString("; " + r)
		}
		b.WriteByte('\n')
	}
	for _, v := range x.Victims {
		fmt.Fprintf(&b, "victim %s of priority %d in %s: %s, evicted %v\n", v.Workload.Name, v.Priority, v.ClusterQueue, v.Reason, v.Evicted)
	}
	if x.Nobody != "" {
		fmt.Fprintf(&b, "nobody is preempted: %s\n", x.Nobody)
	}
	return b.String()
}

func in(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func lines[T any](all []T, text func(T) string) string {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(text(one) + "\n")
	}
	return b.String()
}

// arguments reads a command's.
type arguments struct{ *datadriven.TestData }

func (a arguments) name() string {
	if len(a.CmdArgs) == 0 {
		return ""
	}
	return a.CmdArgs[0].Key
}

func (a arguments) all(key string) []string {
	for _, arg := range a.CmdArgs {
		if arg.Key == key {
			if len(arg.Vals) == 0 {
				return []string{""}
			}
			return arg.Vals
		}
	}
	return nil
}

func (a arguments) has(key string) bool { return a.all(key) != nil }

func (a arguments) text(key string) string { return strings.Join(a.all(key), ",") }

func (a arguments) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(a.text(key)); err == nil {
		return n
	}
	return otherwise
}

func (a arguments) flavor() kueue.ResourceFlavorSpec {
	var spec kueue.ResourceFlavorSpec
	if key, value, labelled := strings.Cut(a.text("label"), ":"); labelled {
		spec.NodeLabels = map[string]string{key: value}
	}
	if taint := a.text("taint"); taint != "" {
		spec.NodeTaints = []corev1.Taint{{Key: taint, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	}
	return spec
}

// quota makes one resource group for each set of resources that flavors have in common.
func (a arguments) quota(t *testing.T) []kueue.ResourceGroup {
	t.Helper()
	var flavors []string
	quotas := map[string][]kueue.ResourceQuota{}
	for _, text := range a.all("quota") {
		parts := strings.Split(text, ":")
		q := kueue.ResourceQuota{Name: corev1.ResourceName(parts[1]), NominalQuota: resource.MustParse(parts[2])}
		limit := func(i int) *resource.Quantity {
			if len(parts) <= i || parts[i] == "" {
				return nil
			}
			v := resource.MustParse(parts[i])
			return &v
		}
		q.BorrowingLimit, q.LendingLimit = limit(3), limit(4)
		if !slices.Contains(flavors, parts[0]) {
			flavors = append(flavors, parts[0])
		}
		quotas[parts[0]] = append(quotas[parts[0]], q)
	}
	var groups []kueue.ResourceGroup
	for _, f := range flavors {
		var covered []corev1.ResourceName
		for _, q := range quotas[f] {
			covered = append(covered, q.Name)
		}
		at := slices.IndexFunc(groups, func(g kueue.ResourceGroup) bool { return slices.Equal(g.CoveredResources, covered) })
		if at < 0 {
			at, groups = len(groups), append(groups, kueue.ResourceGroup{CoveredResources: covered})
		}
		groups[at].Flavors = append(groups[at].Flavors, kueue.FlavorQuotas{Name: kueue.ResourceFlavorReference(f), Resources: quotas[f]})
	}
	return groups
}

func (a arguments) usages(t *testing.T) *configuration.AdmissionFairSharing {
	t.Helper()
	duration := func(key string) (d metav1.Duration) {
		parsed, err := time.ParseDuration(a.text(key))
		if err != nil {
			t.Fatal(err)
		}
		d.Duration = parsed
		return d
	}
	config := &configuration.AdmissionFairSharing{UsageHalfLifeTime: duration("halflife"), UsageSamplingInterval: duration("interval")}
	if a.has("cpu") {
		config.ResourceWeights = map[corev1.ResourceName]float64{corev1.ResourceCPU: float64(a.number("cpu", 1))}
	}
	return config
}

func (a arguments) weight() *kueue.FairSharing {
	if !a.has("weight") {
		return nil
	}
	w := resource.MustParse(a.text("weight"))
	return &kueue.FairSharing{Weight: &w}
}

func (a arguments) queue(t *testing.T) kueue.ClusterQueueSpec {
	t.Helper()
	spec := kueue.ClusterQueueSpec{
		NamespaceSelector: &metav1.LabelSelector{}, ResourceGroups: a.quota(t), CohortName: kueue.CohortReference(a.text("cohort")), FairSharing: a.weight(),
		Preemption: &kueue.ClusterQueuePreemption{
			WithinClusterQueue: kueue.PreemptionPolicy(a.text("within")), ReclaimWithinCohort: kueue.PreemptionPolicy(a.text("reclaim")),
		},
		FlavorFungibility: &kueue.FlavorFungibility{
			WhenCanBorrow: kueue.FlavorFungibilityPolicy(a.text("borrowing")), WhenCanPreempt: kueue.FlavorFungibilityPolicy(a.text("preempting")),
		},
	}
	if a.has("strict") {
		spec.QueueingStrategy = kueue.StrictFIFO
	}
	if a.has("borrow") {
		spec.Preemption.BorrowWithinCohort = &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicy(a.text("borrow"))}
		if a.has("threshold") {
			threshold := int32(a.number("threshold", 0))
			spec.Preemption.BorrowWithinCohort.MaxPriorityThreshold = &threshold
		}
	}
	if a.has("prefer") {
		p := kueue.FlavorFungibilityPreference(a.text("prefer"))
		spec.FlavorFungibility.Preference = &p
	}
	if a.has("usage") {
		spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	}
	if check := a.text("check"); check != "" {
		spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{
			AdmissionChecks: []kueue.AdmissionCheckStrategyRule{{Name: kueue.AdmissionCheckReference(check)}},
		}
	}
	if a.has("stop") {
		p := kueue.StopPolicy(a.text("stop"))
		spec.StopPolicy = &p
	}
	return spec
}

func (a arguments) workload(t *testing.T, name string, created time.Time) Workload {
	t.Helper()
	w := Workload{NamespacedName: in(name), UID: "uid-" + name, Created: created, Priority: int32(a.number("priority", 0)), Queue: "a", Inactive: a.has("inactive")}
	set := PodSet{Name: "main", Count: int32(a.number("count", 1)), Requests: corev1.ResourceList{}}
	for _, arg := range a.CmdArgs[1:] {
		switch arg.Key {
		case "priority", "count", "inactive":
		case "queue":
			w.Queue = a.text("queue")
		case "replaces":
			w.Replaces = in(a.text("replaces"))
		case "min":
			least := int32(a.number("min", 1))
			set.MinCount = &least
		case "select":
			key, value, _ := strings.Cut(a.text("select"), ":")
			set.NodeSelector = map[string]string{key: value}
		case "tolerate":
			set.Tolerations = []corev1.Toleration{{Key: a.text("tolerate"), Operator: corev1.TolerationOpExists}}
		default:
			set.Requests[corev1.ResourceName(arg.Key)] = resource.MustParse(a.text(arg.Key))
		}
	}
	w.PodSets = []PodSet{set}
	return w
}
