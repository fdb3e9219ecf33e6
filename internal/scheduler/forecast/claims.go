package forecast

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Claim is a statement that an answer makes, or a set of them. Each is certain or has its own reasons for not being so:
// that the scheduler chooses freely among 500 equal nodes leaves open where a pod starts, and not whom it evicts.
type Claim uint8

// The claims of an answer.
const (
	ClaimOutcome   Claim = 1 << iota // it fits, preempts, waits, or can never run
	ClaimEvictions                   // which pods and workloads stop for it, or how many of which, and what becomes of them
	ClaimPlacement                   // the nodes of its pods
	ClaimStart                       // when its pods start, and after whom
	ClaimQueue                       // what its queue decides, and its position
)

const (
	everyClaim  = ClaimOutcome | ClaimEvictions | ClaimPlacement | ClaimStart | ClaimQueue
	beyondQueue = everyClaim &^ ClaimQueue // what follows once the queue has decided
	// gatedClaims are those that gates ask about: will it run, and does it hurt anybody?
	gatedClaims = ClaimOutcome | ClaimEvictions
)

var claimWords = []string{"outcome", "evictions", "placement", "start", "queue"}

// Names are the claims of a set, as programs read them.
func (c Claim) Names() []string {
	names := []string{}
	for i, name := range claimWords {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// MarshalJSON writes the names.
func (c Claim) MarshalJSON() ([]byte, error) { return json.Marshal(c.Names()) }

// UnmarshalJSON reads the names; it passes over those that it does not know.
func (c *Claim) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	*c = 0
	for i, name := range claimWords {
		if slices.Contains(names, name) {
			*c |= 1 << i
		}
	}
	return nil
}

// Certainty is whether a claim is certain: if the cluster does not change after the snapshot, what happens is what the
// answer says, or one of the alternatives that it names.
type Certainty struct {
	Certain bool `json:"certain"`
	// Reasons are the codes of the reasons why it is not, each once.
	Reasons []ReasonCode `json:"reasons,omitempty"`
}

// Claims are the certainties of an answer's claims.
type Claims struct {
	Outcome   Certainty  `json:"outcome"`
	Evictions Evicted    `json:"evictions"`
	Placement Certainty  `json:"placement"`
	Start     Certainty  `json:"start"`
	Queue     *Certainty `json:"queue,omitempty"` // nil for a job without a queue
}

// Evicted is the claim about the pods of others that stop for a job.
type Evicted struct {
	Certainty
	// Pods is how many.
	Pods Range `json:"pods"`
	// HighestPriority is the highest priority among them, candidates included; nil if there are none.
	HighestPriority *int32 `json:"highest_priority,omitempty"`
	// Choice is how many of which candidates the scheduler chooses, besides those that are certain; nil without candidates.
	Choice *Choice `json:"choice,omitempty"`
}

// Range is a number of pods, from the fewest to the most that are possible.
type Range struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

func (r Range) text() string {
	if r.Min == r.Max {
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}

// Choice is that the scheduler chooses so many of some pods, which are namespace/name.
type Choice struct {
	Choose Range    `json:"choose"`
	Of     []string `json:"of"`
}

// Claims returns the certainties of the answer's claims.
func (a Answer) Claims() Claims {
	claims := Claims{
		Outcome: a.certainty(ClaimOutcome), Placement: a.certainty(ClaimPlacement), Start: a.certainty(ClaimStart), Evictions: a.evicted(),
	}
	if len(a.Queues) > 0 {
		of := a.certainty(ClaimQueue)
		claims.Queue = &of
	}
	return claims
}

// Certain reports whether all of some claims are certain.
func (a Answer) Certain(of Claim) bool { return len(a.codes(of)) == 0 }

// Codes are those of all reasons, each once.
func (a Answer) Codes() []ReasonCode { return a.codes(everyClaim) }

func (a Answer) certainty(of Claim) Certainty {
	codes := a.codes(of)
	return Certainty{Certain: len(codes) == 0, Reasons: codes}
}

// codes are those of the reasons that undermine any of some claims, each once.
func (a Answer) codes(of Claim) (codes []ReasonCode) {
	for _, reason := range a.Approximate {
		if reason.undermines(of) && !slices.Contains(codes, reason.Code) {
			codes = append(codes, reason.Code)
		}
	}
	return codes
}

func (a Answer) evicted() Evicted {
	claim := Evicted{Certainty: a.certainty(ClaimEvictions), Pods: a.Stops}
	certain, of := 0, []string{}
	for _, e := range a.Evicts {
		if e.Own {
			continue
		}
		if claim.HighestPriority == nil || *claim.HighestPriority < e.Priority {
			priority := e.Priority
			claim.HighestPriority = &priority
		}
		switch {
		case e.Certain:
			certain += e.count()
		case e.Workload:
			of = append(of, e.Pods...)
		default:
			of = append(of, e.what())
		}
	}
	if len(of) > 0 {
		claim.Choice = &Choice{Choose: Range{max(0, a.Stops.Min-certain), max(0, a.Stops.Max-certain)}, Of: of}
	}
	return claim
}

// count is the number of pods that stop.
func (e Eviction) count() int {
	if e.Workload {
		return len(e.Pods)
	}
	return 1
}
