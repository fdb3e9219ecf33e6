package truth_test

import (
	"context"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/e2e/truth"
)

func TestASituationIsMadeAsSmallAsItsReasonAllows(t *testing.T) {
	s, err := truth.Parse([]byte(`
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: main, image: any, command: [sleep, "1"]}]}
#THEN
apiVersion: v1
kind: Pod
metadata: {name: cause, labels: {a: b}}
spec:
  priorityClassName: low
  containers: [{name: main, image: any, command: [sleep, "1"], resources: {requests: {cpu: "3", memory: 1Gi}}}]
`), []byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {parallelism: 4, completions: 4, template: {spec: {priorityClassName: high, containers: [{name: main, image: any, command: [sleep, "1"]}, {name: more, image: any}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: second}
spec: {template: {spec: {containers: [{name: main, image: any}]}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	small := truth.Shrink(t.Context(), s, func(s *truth.Situation) bool {
		setup, job := s.Texts()
		return strings.Contains(setup, `cpu: "3"`) && (strings.Contains(job, "parallelism: 4") || strings.Contains(job, "parallelism: 3"))
	})
	setup, job := small.Texts()
	const wantSetup = `apiVersion: v1
kind: Pod
metadata: {name: cause}
spec: {containers: [{command: [sleep, "1"], image: any, name: main, resources: {requests: {cpu: "3"}}}]}
`
	const wantJob = `apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {parallelism: 3, template: {spec: {containers: [{command: [sleep, "1"], image: any, name: main}]}}}
`
	if setup != wantSetup {
		t.Errorf("the setup is\n%s\nwant\n%s", setup, wantSetup)
	}
	if job != wantJob {
		t.Errorf("the job is\n%s\nwant\n%s", job, wantJob)
	}
}

func TestNothingIsTakenFromASituationWhenThereIsNoTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := truth.Generate(1)
	if truth.Shrink(ctx, s, func(*truth.Situation) bool { return true }) != s {
		t.Error("it is another one")
	}
}
