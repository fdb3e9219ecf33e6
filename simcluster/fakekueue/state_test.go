package fakekueue_test

import (
	"fmt"
	"strings"
	"testing"
)

// A notebook is a test that keeps what is logged.
type notebook struct {
	testing.TB
	text strings.Builder
}

func (n *notebook) Log(args ...any)                 { fmt.Fprintln(&n.text, args...) }
func (n *notebook) Logf(format string, args ...any) { fmt.Fprintf(&n.text, format+"\n", args...) }

func TestTheStateOfANamespaceHasItsPodsWorkloadsAndEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.job("train", "", 1, forever)
	w.becomes("train", "Admitted")
	pod := w.running("train-", 1)[0]
	n := &notebook{TB: t}
	cluster.LogState(n, w.namespace)
	for _, want := range []string{
		w.namespace + "/" + pod.Name + " on \"cpu-1\"", `"phase":"Running"`, "in queue, of [{batch/v1 Job train",
		"Quota reserved in ClusterQueue " + w.global("cq"), "SuccessfulCreate job " + w.namespace + "/train", "the end of the queue controller's log:\n",
	} {
		if !strings.Contains(n.text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, n.text.String())
		}
	}
}
