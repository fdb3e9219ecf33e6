package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// variables are a configuration's input variables, as `-var` takes them.
type variables map[string]string

// terraform runs the real terraform on a configuration, with the provider's executable in the registry's place.
type terraform struct {
	executable  string
	environment map[string]string
	working     string // the copy of the examples
	print       io.Writer

	exec *tfexec.Terraform
	plan string
}

// newTerraform prepares runs of an example, whose path is relative to the examples' folder, on a copy of the examples
// in dir, so that terraform's state stays out of the repository; what terraform prints goes to output.
func newTerraform(executable, provider, examples, example, dir string, output io.Writer) (*terraform, error) {
	working := filepath.Join(dir, "examples")
	if err := copyExamples(working, examples); err != nil {
		return nil, fmt.Errorf("copy the examples: %w", err)
	}
	// With dev_overrides terraform takes the provider from there and needs no init, lock file or registry. The
	// block {} of `direct` is left out on purpose: any other provider would be an error instead of a download.
	config := filepath.Join(dir, "terraform.rc")
	// Without a registry the address is that of Terraform's or of OpenTofu's own, whichever reads it.
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"elastic-training/elastic\" = %q\n  }\n}\n", filepath.Dir(provider))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write terraform's configuration: %w", err)
	}

	environment := map[string]string{}
	for _, entry := range os.Environ() {
		// A user's KUBE_* and TF_* would lead the provider to another cluster, or terraform to another state.
		if name, value, ok := strings.Cut(entry, "="); ok && !strings.HasPrefix(name, "TF_") && !strings.HasPrefix(name, "KUBE") {
			environment[name] = value
		}
	}
	environment["TF_CLI_CONFIG_FILE"] = config
	environment["CHECKPOINT_DISABLE"] = "1"
	t := &terraform{
		executable: executable, environment: environment, working: working, print: output,
		plan: filepath.Join(dir, "terraform.tfplan"),
	}
	var err error
	t.exec, err = t.in(example)
	return t, err
}

// in runs terraform in an example's folder.
func (t *terraform) in(example string) (*tfexec.Terraform, error) {
	tf, err := tfexec.NewTerraform(filepath.Join(t.working, example), t.executable)
	if err != nil {
		return nil, fmt.Errorf("terraform in %s: %w", example, err)
	}
	if err := tf.SetEnv(t.environment); err != nil {
		return nil, fmt.Errorf("terraform's environment: %w", err)
	}
	tf.SetStdout(t.print)
	return tf, nil
}

// output applies another example, one that only asks, and reads one of its outputs.
func (t *terraform) output(ctx context.Context, example string, vars variables, name string, value any) error {
	tf, err := t.in(example)
	if err != nil {
		return err
	}
	var options []tfexec.ApplyOption
	for name, value := range vars {
		options = append(options, tfexec.Var(name+"="+value))
	}
	if err := tf.Apply(ctx, options...); err != nil {
		return fmt.Errorf("terraform apply of %s: %w", example, err)
	}
	outputs, err := tf.Output(ctx)
	if err != nil {
		return fmt.Errorf("terraform output of %s: %w", example, err)
	}
	if err := json.Unmarshal(outputs[name].Value, value); err != nil {
		return fmt.Errorf("terraform output %s of %s: %w", name, example, err)
	}
	return nil
}

// apply makes it so.
func (t *terraform) apply(ctx context.Context, vars variables) error {
	var options []tfexec.ApplyOption
	for name, value := range vars {
		options = append(options, tfexec.Var(name+"="+value))
	}
	if err := t.exec.Apply(ctx, options...); err != nil {
		return fmt.Errorf("terraform apply: %w", err)
	}
	return nil
}

// changes are what a plan would change: resources with their actions, and outputs.
func (t *terraform) changes(ctx context.Context, vars variables) ([]string, error) {
	options := []tfexec.PlanOption{tfexec.Out(t.plan)}
	for name, value := range vars {
		options = append(options, tfexec.Var(name+"="+value))
	}
	differs, err := t.exec.Plan(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("terraform plan: %w", err)
	}
	if !differs {
		return nil, nil
	}
	plan, err := t.exec.ShowPlanFile(ctx, t.plan)
	if err != nil {
		return nil, fmt.Errorf("terraform show of the plan: %w", err)
	}
	var changes []string
	for _, change := range plan.ResourceChanges {
		if !change.Change.Actions.NoOp() && !change.Change.Actions.Read() {
			changes = append(changes, fmt.Sprintf("%s %v", change.Address, change.Change.Actions))
		}
	}
	for name, change := range plan.OutputChanges {
		if !change.Actions.NoOp() {
			changes = append(changes, fmt.Sprintf("output %s %v", name, change.Actions))
		}
	}
	if len(changes) == 0 {
		changes = []string{"terraform plan says that there are changes, and its plan file holds none"}
	}
	return changes, nil
}

// destroy removes everything.
func (t *terraform) destroy(ctx context.Context, vars variables) error {
	var options []tfexec.DestroyOption
	for name, value := range vars {
		options = append(options, tfexec.Var(name+"="+value))
	}
	if err := t.exec.Destroy(ctx, options...); err != nil {
		return fmt.Errorf("terraform destroy: %w", err)
	}
	return nil
}

// copyExamples copies configurations, model files and task files, and nothing else that lies there: a user's own state
// or variables are not the scenario's.
func copyExamples(target, source string) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		extension := filepath.Ext(path)
		if err != nil || !entry.Type().IsRegular() || extension != ".tf" && extension != ".py" && extension != ".yaml" {
			return err
		}
		name, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		copied := filepath.Join(target, name)
		if err := os.MkdirAll(filepath.Dir(copied), 0o755); err != nil {
			return err
		}
		return os.WriteFile(copied, text, 0o600)
	})
}

// warnings are the texts of the warnings that a plan prints.
func (t *terraform) warnings(ctx context.Context, vars variables) (string, error) {
	var options []tfexec.PlanOption
	for name, value := range vars {
		options = append(options, tfexec.Var(name+"="+value))
	}
	var texts []string
	output := &lines{report: func(line string) {
		var message struct {
			Diagnostic *struct{ Severity, Summary, Detail string }
		}
		if json.Unmarshal([]byte(line), &message) != nil || message.Diagnostic == nil {
			return
		}
		// Every plan here warns of the provider that is not from a registry.
		if d := message.Diagnostic; d.Severity == "warning" && !strings.HasPrefix(d.Summary, "Provider development overrides") {
			texts = append(texts, d.Summary+"\n"+d.Detail)
		}
	}}
	if _, err := t.exec.PlanJSON(ctx, output, options...); err != nil {
		return "", fmt.Errorf("terraform plan: %w", err)
	}
	return strings.Join(texts, "\n"), nil
}
