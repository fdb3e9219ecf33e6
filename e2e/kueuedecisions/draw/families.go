package draw

// features are what the scenarios of a family may have.
type features struct {
	topology   bool // flavors have a topology
	layers     bool // slices in several layers
	groups     bool // pod sets in a group: leader and workers
	overlaps   bool // two flavors may have nodes in common
	tree       bool // cohorts in a tree
	limits     bool // borrowing and lending limits
	fair       bool // fair sharing
	flavors    int  // at most so many
	selectors  bool // pods choose flavors by labels and tolerations
	partial    bool // partial admission
	boost      bool // priorities are boosted
	slices     bool // jobs grow and shrink by workload slices
	late       bool // pods are not ready in time
	limited    bool // of those, some are late too often, and admission waits for pods
	changes    bool // nodes, other pods, quotas and queues change
	cohortless bool // queues may be on their own
	usage      bool // admission fair sharing: what LocalQueues have used orders workloads
}

var families = map[string]features{
	"hierarchy":   {tree: true, limits: true, flavors: 2},
	"reclaim":     {limits: true, flavors: 3, selectors: true},
	"fairtrees":   {tree: true, limits: true, fair: true, flavors: 2},
	"layers":      {topology: true, layers: true, flavors: 1, cohortless: true},
	"groups":      {topology: true, groups: true, flavors: 2, selectors: true},
	"rackreclaim": {topology: true, limits: true, flavors: 2, tree: true},
	"rackshares":  {topology: true, groups: true, fair: true, tree: true, limits: true, flavors: 2},
	"overlapping": {topology: true, overlaps: true, flavors: 3, limits: true},
	"shrink":      {partial: true, limits: true, flavors: 2, tree: true},
	"rackshrink":  {topology: true, partial: true, flavors: 2, groups: true},
	"boost":       {boost: true, limits: true, flavors: 2, tree: true},
	"elastic":     {slices: true, limits: true, flavors: 2, tree: true},
	"late":        {late: true, limits: true, flavors: 2, tree: true},
	"impatient":   {late: true, limited: true, limits: true, flavors: 2, tree: true},
	"changes":     {topology: true, changes: true, flavors: 2, limits: true, tree: true},
	"usage":       {usage: true, flavors: 2, limits: true, tree: true, cohortless: true},
	"quotas":      {changes: true, flavors: 2, limits: true, tree: true, partial: true},
}
