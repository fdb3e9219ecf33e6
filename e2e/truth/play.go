package truth

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
	"github.com/elastic-training/terraform-provider-elastic/internal/scheduler/forecast"
)

// An Outcome is the result of a situation.
type Outcome struct {
	Situation *Situation
	Verdict   Verdict
	Why       []string
	Answers   []forecast.Answer
	Refusal   string // why no forecast was made
	Happened  Happened
	Took      time.Duration
}

// Play sets a situation up, forecasts its job, applies it, waits until nothing changes, judges, and removes everything.
// An error means that the situation, or the cluster, does not allow a judgement.
func (s *Stage) Play(ctx context.Context, situation *Situation) (outcome Outcome, err error) {
	began := time.Now()
	defer func() {
		// A situation that the test's end interrupts is cleaned up nevertheless.
		if cleanErr := s.Clean(context.WithoutCancel(ctx)); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: cleaning up: %w", situation.Name, cleanErr))
		}
		outcome.Took = time.Since(began)
	}()
	outcome.Situation = situation
	whole := ctx
	for i, part := range situation.Setup {
		if err := s.setUp(ctx, part); err != nil {
			return outcome, fmt.Errorf("%s: setup, part %d: %w", situation.Name, i+1, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	before := s.view.moment()
	outcome.Answers, outcome.Refusal, err = s.forecast(ctx, situation)
	if err != nil {
		return outcome, fmt.Errorf("%s: %w", situation.Name, err)
	}
	refused := s.apply(ctx, situation.Job)
	if refused != nil && !isRefusal(refused) {
		return outcome, fmt.Errorf("%s: %w", situation.Name, refused)
	}
	if err := s.Settle(ctx); err != nil {
		return outcome, fmt.Errorf("%s: after the job was made: %w", situation.Name, err)
	}
	judge := func() {
		outcome.Happened = s.view.happened(before, situation.Job)
		if refused != nil {
			outcome.Happened.Refused = refused.Error()
		}
		outcome.Verdict, outcome.Why = Judge(outcome.Answers, outcome.Refusal, outcome.Happened)
	}
	judge()
	if outcome.Verdict == Wrong && s.view.jobsBackOff() != nil {
		// A forecast covers the time until Jobs have created their pods again, which may evict others in turn.
		ctx, cancel := context.WithTimeout(whole, patience.Short)
		defer cancel()
		if s.settleBackoffs(ctx) == nil {
			judge()
		}
	}
	return outcome, nil
}

// setUp applies a part of a setup and waits until nothing changes any more. Short back-offs of Jobs are waited for as
// well: the pods that follow them would be attributed to the planned job.
func (s *Stage) setUp(ctx context.Context, part []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Medium)
	defer cancel()
	if err := s.apply(ctx, part); err != nil {
		return err
	}
	// A Job that goes on failing is left alone.
	short, cancelShort := context.WithTimeout(ctx, patience.Short)
	defer cancelShort()
	if s.settleBackoffs(short) == nil {
		return nil
	}
	return s.Settle(ctx)
}

// Unfit reports whether an error of Play is the situation's own: the API server refuses its objects, or does not know
// their kind, because a controller is not built.
func Unfit(err error) bool { return (isRefusal(err) || meta.IsNoMatchError(err)) && !Broken(err) }

// Broken reports whether an error of Play makes its stage unusable.
func Broken(err error) bool { return errors.Is(err, errUnclean) }

// isRefusal reports whether the API server has refused a request.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// forecast is the result of `elastic-sim forecast --json`. refusal is its error, if it makes no forecast.
func (s *Stage) forecast(ctx context.Context, situation *Situation) (answers []forecast.Answer, refusal string, err error) {
	dir, err := os.MkdirTemp("", "truth-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // The system removes temporary files, too.
	if err := situation.Save(dir); err != nil {
		return nil, "", err
	}
	var out, said bytes.Buffer
	command := exec.CommandContext(ctx, s.simulator, "forecast", "-f", JobFile, "--kubeconfig", s.kubeconfig, "--json")
	command.Dir, command.Stdout, command.Stderr = dir, &out, &said
	if err := command.Run(); err != nil && command.ProcessState.ExitCode() <= cli.Failed {
		return nil, strings.TrimSpace(said.String()), nil
	}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		var answer forecast.Answer
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			return nil, "", fmt.Errorf("reading a forecast: %w", err)
		}
		answers = append(answers, answer)
	}
	if len(answers) == 0 {
		return nil, "", fmt.Errorf("the forecast broke off: %s", strings.TrimSpace(said.String()))
	}
	return answers, "", nil
}

// Reservations are why the answers are approximate, each once.
func (o Outcome) Reservations() []string {
	var texts []string
	for _, a := range o.Answers {
		for _, reason := range a.Approximate {
			if text := strings.TrimSpace(fmt.Sprintf("%s %s: %s", reason.Code, reason.Object, reason.Text)); !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// String is everything about an outcome, for a reader.
func (o Outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", o.Situation.Name, o.Verdict)
	for _, why := range o.Why {
		fmt.Fprintf(&b, "  %s\n", why)
	}
	for _, a := range o.Answers {
		fmt.Fprintf(&b, "%s\n%s\n", a.Summary(), a.Text())
	}
	fmt.Fprint(&b, o.Happened)
	return b.String()
}
