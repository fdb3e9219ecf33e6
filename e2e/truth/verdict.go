package truth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// A Verdict is the result of comparing a forecast with what happened.
type Verdict string

// The verdicts.
const (
	Right       Verdict = "right"
	Approximate Verdict = "approximate" // it does not claim to know the outcome or the evictions
	Refused     Verdict = "refused"     // no forecast was made
	Wrong       Verdict = "wrong"
)

// Judge compares the answers of a forecast with what happened: each of their claims that is certain. why lists the
// differences, a sentence each, also those of claims that are not certain, whatever the verdict; or the reason why no forecast was made.
func Judge(answers []forecast.Answer, refusal string, h Happened) (verdict Verdict, why []string) {
	if refusal != "" {
		return Refused, []string{refusal}
	}
	certain := func(of forecast.Claim) bool {
		return !slices.ContainsFunc(answers, func(a forecast.Answer) bool { return !a.Certain(of) })
	}
	var wrong, other []string
	judge := func(claim forecast.Claim, differences []string) {
		if certain(claim) {
			wrong = append(wrong, differences...)
		} else {
			other = append(other, differences...)
		}
	}
	judge(forecast.ClaimEvictions, misjudgedEvictions(answers, h))
	if certain(forecast.ClaimPlacement) {
		judge(forecast.ClaimPlacement, misjudgedPlaces(answers, h))
	} else {
		judge(forecast.ClaimOutcome, misjudgedPlaces(anywhere(answers), h))
	}
	switch {
	case len(wrong) > 0:
		return Wrong, append(wrong, other...)
	case slices.ContainsFunc(answers, func(a forecast.Answer) bool { return len(a.Unaccepted()) > 0 }):
		return Approximate, other
	default:
		return Right, other
	}
}

// anywhere are the answers if each pod that starts may do so on every node.
func anywhere(answers []forecast.Answer) []forecast.Answer {
	answers = slices.Clone(answers)
	for i := range answers {
		answers[i].Pods = slices.Clone(answers[i].Pods)
		for j := range answers[i].Pods {
			if pod := &answers[i].Pods[j]; len(pod.Nodes) > 0 {
				pod.Others++
			}
		}
	}
	return answers
}

// misjudgedEvictions are the certain evictions that did not happen, and those that happened and were not forecast.
func misjudgedEvictions(answers []forecast.Answer, h Happened) []string {
	var why []string
	evicted := func(name string) bool {
		return slices.ContainsFunc(h.Evicted, func(e Evicted) bool { return e.String() == name })
	}
	named := map[string]bool{}  // pods and workloads
	owners := map[string]bool{} // of which some pod is named
	for _, a := range answers {
		for _, e := range a.Evicts {
			name := e.Namespace + "/" + e.Name
			owners[e.OwnerKind+" "+e.Namespace+"/"+e.OwnerName] = true
			switch {
			case e.Planned:
			case e.Workload:
				named["workload "+name] = true
				for _, pod := range e.Pods {
					named[pod] = true
					if e.Certain && !evicted(pod) {
						why = append(why, fmt.Sprintf("%s: %s of workload %s is evicted for certain, and stays", a.Name, pod, name))
					}
				}
				if e.Certain && !slices.Contains(h.Workloads, name) {
					why = append(why, fmt.Sprintf("%s: workload %s is evicted for certain, and stays", a.Name, name))
				}
			default:
				named[name] = true
				if e.Certain && !evicted(name) {
					why = append(why, fmt.Sprintf("%s: %s is evicted for certain, and stays", a.Name, name))
				}
			}
		}
	}
	for _, a := range answers {
		if sparesAll(a, h) {
			why = append(why, fmt.Sprintf("%s: one of several pods is evicted, and none is", a.Name))
		}
	}
	for _, e := range h.Evicted {
		// The name of a pod that a controller created to replace a victim is not predictable.
		if named[e.String()] || e.New && owners[e.Owner.String()] {
			continue
		}
		why = append(why, fmt.Sprintf("%s on %s is evicted, and is not named", e, e.Node))
	}
	for _, name := range h.Workloads {
		if !named["workload "+name] {
			why = append(why, fmt.Sprintf("workload %s is evicted, and is not named", name))
		}
	}
	return why
}

// sparesAll reports whether none of several pods was evicted of which one would be.
func sparesAll(a forecast.Answer, h Happened) bool {
	var either []forecast.Eviction
	for _, e := range a.Evicts {
		if !e.Certain && !e.Workload {
			either = append(either, e)
		}
	}
	if len(either) == 0 || a.MaySpareAll || slices.ContainsFunc(either, func(e forecast.Eviction) bool { return e.Planned }) {
		return false // the forecast for a planned victim names its possible nodes
	}
	return !slices.ContainsFunc(h.Evicted, func(was Evicted) bool {
		return slices.ContainsFunc(either, func(e forecast.Eviction) bool {
			owner := Owner{Kind: e.OwnerKind, Namespace: e.Namespace, Name: e.OwnerName}
			return was.String() == e.Namespace+"/"+e.Name || was.New && was.Owner == owner
		})
	})
}

// misjudgedPlaces are the planned pods that run on other nodes, or in another number, than forecast.
func misjudgedPlaces(answers []forecast.Answer, h Happened) []string {
	var why []string
	for i, a := range answers {
		var running []Place
		for owner, places := range h.Planned {
			if owner.Namespace != a.Namespace || owner.Name != a.Name {
				continue
			}
			for _, place := range places {
				if place.Node != "" {
					running = append(running, place)
				}
			}
		}
		slices.SortFunc(running, func(x, y Place) int { return strings.Compare(x.Name, y.Name) })
		why = append(why, compare(a, losers(answers[i+1:], a), running)...)
	}
	return why
}

// losers are the roles of the pods of an answer that later ones evict, one by one or with their workload: no answer
// covers what happens to those.
func losers(later []forecast.Answer, a forecast.Answer) map[string]bool {
	roles := map[string]bool{}
	for _, other := range later {
		for _, e := range other.Evicts {
			role, ofPod := strings.CutSuffix(e.Name, " of "+a.Name)
			switch {
			case !e.Planned:
			case ofPod:
				roles[role] = true
			case e.Workload && e.Namespace == a.Namespace && e.OwnerName == a.Name:
				for _, pod := range a.Pods {
					roles[pod.Role] = true
				}
			}
		}
	}
	return roles
}

// compare describes how the running pods of a job differ from all alternatives of its answer.
func compare(a forecast.Answer, losers map[string]bool, running []Place) []string {
	var may, must []forecast.PodForecast
	for _, pod := range a.Pods {
		if len(pod.Nodes) > 0 || losers[pod.Role] {
			may = append(may, pod)
		}
		if pod.State == forecast.Starts && !losers[pod.Role] {
			must = append(must, pod)
		}
	}
	fits := func(pod forecast.PodForecast, place Place) bool {
		return exchangeable(a.Alike, pod.Role, place.Index) && (losers[pod.Role] || pod.Others > 0 || slices.Contains(pod.Nodes, place.Node))
	}
	// When every place has a pod of its own, and every pod that starts has a place of its own, then one way has both.
	placed := match(len(running), len(may), func(i, j int) bool { return fits(may[j], running[i]) })
	started := match(len(must), len(running), func(i, j int) bool { return fits(must[i], running[j]) })
	if len(placed) == 0 && len(started) == 0 {
		return nil
	}
	var why []string
	for _, i := range placed {
		why = append(why, fmt.Sprintf("%s: %s runs on %s, and nobody was said to start there but %s", a.Name, running[i].Name, running[i].Node, said(may)))
	}
	for _, i := range started {
		why = append(why, fmt.Sprintf("%s: %s starts on %s, and does not", a.Name, must[i].Role, strings.Join(must[i].Nodes, " or ")))
	}
	return why
}

// exchangeable reports whether the pod of an index, which may be unnumbered, may be the one of a role.
func exchangeable(alike [][]string, role string, index int) bool {
	word, number, numbered := strings.Cut(role, " ")
	if _, err := strconv.Atoi(number); index == unnumbered || !numbered || err != nil {
		return true
	}
	its := word + " " + strconv.Itoa(index)
	return role == its || slices.ContainsFunc(alike, func(row []string) bool {
		return slices.Contains(row, role) && slices.Contains(row, its)
	})
}

// said lists pods and their places.
func said(pods []forecast.PodForecast) string {
	if len(pods) == 0 {
		return "no pod at all"
	}
	var texts []string
	for _, pod := range pods {
		texts = append(texts, pod.Role+" on "+strings.Join(pod.Nodes, " or "))
	}
	return strings.Join(texts, "; ")
}

// match finds each of n a partner of its own among m, and returns those that have none in a way that leaves as few as
// can be.
func match(n, m int, fit func(i, j int) bool) (left []int) {
	partners := make([]int, m)
	for j := range partners {
		partners[j] = -1
	}
	var find func(i int, asked []bool) bool
	find = func(i int, asked []bool) bool {
		for j := range m {
			if asked[j] || !fit(i, j) {
				continue
			}
			asked[j] = true
			if partners[j] < 0 || find(partners[j], asked) {
				partners[j] = i
				return true
			}
		}
		return false
	}
	for i := range n {
		if !find(i, make([]bool, m)) {
			left = append(left, i)
		}
	}
	return left
}
