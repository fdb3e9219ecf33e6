package recording

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/elastic-training/terraform-provider-elastic/e2e/scenario"
)

// The terminal has room for a whole forecast, and its lines are legible at the width of a README.
const columns, rows = 100, 26

// Somebody types a key in typing, reads a command's output for reading, and does not look at a pause longer than idle.
const (
	typing  = 25 * time.Millisecond
	reading = 2500 * time.Millisecond
	idle    = 2500 * time.Millisecond
)

// A step is a command line, or a comment that somebody types, and what must be printed then, in this order.
type step struct {
	line string
	want []string
}

// The session is that of the first tutorial, when the first of its jobs runs.
var session = []step{
	{"# The two workers of low-prio-job fill the cluster. main.tf has a second job, high-prio-job:", nil},
	{"terraform plan -out=plan", []string{"high-prio-job will preempt", "evicts  default/low-prio-job-worker-"}},
	{"terraform apply plan", []string{"Apply complete!"}},
	{"terraform plan   # low-prio-job has lost a worker; is that drift?", []string{"No changes."}},
	{
		"elastic-trainer status --follow low-prio-job",
		[]string{"1 running, 1 pending, 1 preemption", "2 running, 0 pending, 1 preemption", "Succeeded"},
	},
}

const tutorial = "examples/tutorials/elastic-scheduling"

// The jobs last long enough that the first one has steps left when the second one has ended.
var variables = []string{"TF_VAR_pace=20ms", "TF_VAR_low_epochs=2"}

// Record runs the session on a cluster; root is the repository's, and work a folder for its files.
func Record(ctx context.Context, tools scenario.Tools, root, work, kubeconfig string) (Cast, error) {
	t, err := prepare(ctx, tools, root, work, kubeconfig)
	if err != nil {
		return Cast{}, err
	}
	return t.record(ctx, session)
}

// A terminal runs command lines in a folder.
type terminal struct {
	folder      string
	environment []string
}

// prepare copies the tutorial, installs the provider for it and applies its first job.
func prepare(ctx context.Context, tools scenario.Tools, root, work, kubeconfig string) (terminal, error) {
	for _, folder := range []string{tutorial, "examples/models"} {
		if err := os.CopyFS(filepath.Join(work, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
			return terminal{}, fmt.Errorf("copy the tutorial: %w", err)
		}
	}
	config, err := install(work, tools.Provider)
	if err != nil {
		return terminal{}, fmt.Errorf("install the provider for the recording: %w", err)
	}
	t := terminal{folder: filepath.Join(work, tutorial), environment: append(inherited(),
		"PATH="+filepath.Dir(tools.Trainer)+string(os.PathListSeparator)+os.Getenv("PATH"), "TERM=xterm-256color", "CHECKPOINT_DISABLE=1",
		"KUBECONFIG="+kubeconfig, "TF_VAR_config_path="+kubeconfig, "TF_CLI_CONFIG_FILE="+config)}
	t.environment = append(t.environment, variables...)
	command := t.command(ctx, "terraform init && terraform apply -auto-approve -var submit_high=false")
	if printed, err := command.CombinedOutput(); err != nil {
		return terminal{}, fmt.Errorf("apply the tutorial's first job: %w\n%s", err, printed)
	}
	return t, nil
}

// install makes a mirror with the provider for Terraform and for OpenTofu, and returns the path of the configuration
// that names it: unlike the development overrides of `make build`, it makes no command print a warning.
func install(work, provider string) (string, error) {
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		folder := filepath.Join(work, "mirror", registry, "elastic-training/elastic/0.1.0", runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		if err := os.Symlink(provider, filepath.Join(folder, filepath.Base(provider))); err != nil {
			return "", err
		}
	}
	config := filepath.Join(work, "terraform.rc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", filepath.Join(work, "mirror"))
	return config, os.WriteFile(config, []byte(text), 0o600)
}

// inherited is this process's environment without what would lead to another cluster or another state.
func inherited() []string {
	var kept []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TF_") && !strings.HasPrefix(entry, "KUBE") && !strings.HasPrefix(entry, "NO_COLOR=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

func (t terminal) command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-c", line)
	c.Dir, c.Env = t.folder, t.environment
	return c
}

// record runs a session's steps, of which none may fail.
func (t terminal) record(ctx context.Context, steps []step) (Cast, error) {
	r := &recorder{began: time.Now()}
	for _, s := range steps {
		from := len(r.events)
		r.enter(s.line)
		if err := t.run(ctx, s.line, r); err != nil {
			return Cast{}, fmt.Errorf("%s: %w\n%s", s.line, err, Cast{events: r.events[from:]}.text())
		}
		if err := holds(Cast{events: r.events[from:]}.text(), s.want); err != nil {
			return Cast{}, fmt.Errorf("%s: %w", s.line, err)
		}
		if len(s.want) > 0 {
			r.wait(reading)
		}
	}
	_, _ = r.Write([]byte(prompt))
	return Cast{header{2, columns, rows, idle.Seconds(), "A forecast, a preemption and no drift", map[string]string{"TERM": "xterm-256color"}}, r.events}, nil
}

const prompt = "\x1b[32m$\x1b[0m "

// enter types a command line at a prompt.
func (r *recorder) enter(line string) {
	_, _ = r.Write([]byte(prompt))
	for _, key := range line + "\n" {
		r.wait(typing)
		_, _ = r.Write([]byte(strings.ReplaceAll(string(key), "\n", "\r\n")))
	}
}

// run runs a command line in a pseudo-terminal.
func (t terminal) run(ctx context.Context, line string, printed io.Writer) error {
	c := t.command(ctx, line)
	end, err := pty.StartWithSize(c, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		return err
	}
	defer end.Close()
	// On Linux the end of a terminal whose program has ended is an error.
	if _, err := io.Copy(printed, end); err != nil && !errors.Is(err, syscall.EIO) {
		return err
	}
	return c.Wait()
}

// holds says which of the wanted texts is missing, or out of order.
func holds(printed string, want []string) error {
	rest := printed
	for _, text := range want {
		_, after, found := strings.Cut(rest, text)
		if !found {
			return fmt.Errorf("%q is missing, or out of order, in\n%s", text, printed)
		}
		rest = after
	}
	return nil
}
