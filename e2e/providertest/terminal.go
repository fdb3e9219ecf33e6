package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// Terminal runs terraform as a person does, in a directory of its own, and shows what it prints: warnings too, which
// plugin-testing keeps to itself.
type Terminal struct {
	Directory string
	// Environment is added to that of the test's process, NAME=VALUE; the last of several of a name counts.
	Environment []string
	reattach    string
}

// NewTerminal serves the provider, without environment variables, until the test ends.
func NewTerminal(t *testing.T) *Terminal {
	t.Helper()
	return NewTerminalWith(t, nil)
}

// NewTerminalWith serves the provider with these environment variables, such as KUBE_CONFIG_PATH for what configures no
// provider, until the test ends.
func NewTerminalWith(t *testing.T, variables map[string]string) *Terminal {
	t.Helper()
	const address = terraformRegistry + "/elastic-training/elastic"
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	reattach, closed := make(chan *plugin.ReattachConfig, 1), make(chan struct{})
	factory := Factories(t, variables)["elastic"]
	go func() {
		err := tf6server.Serve(address, func() tfprotov6.ProviderServer {
			server, err := factory()
			if err != nil {
				panic(err)
			}
			return server
		}, tf6server.WithDebug(ctx, reattach, closed), tf6server.WithLoggingSink(t), tf6server.WithoutLogStderrOverride(),
			tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
		if err != nil {
			t.Errorf("serve the provider: %v", err)
		}
	}()
	config := <-reattach
	t.Cleanup(func() {
		stop()
		<-closed
	})
	serving := map[string]any{
		"Protocol": config.Protocol, "ProtocolVersion": config.ProtocolVersion, "Pid": config.Pid, "Test": config.Test,
		"Addr": map[string]string{"Network": config.Addr.Network(), "String": config.Addr.String()},
	}
	addresses := map[string]any{}
	for _, registry := range []string{terraformRegistry, opentofuRegistry} {
		// Where the command line looks with required_providers, and without them.
		addresses[registry+"/elastic-training/elastic"], addresses[registry+"/hashicorp/elastic"] = serving, serving
		// Where resources are moved from; nothing but its presence is asked of it then.
		addresses[registry+"/hashicorp/kubernetes"] = serving
	}
	text, err := json.Marshal(addresses)
	if err != nil {
		t.Fatal(err)
	}
	return &Terminal{Directory: t.TempDir(), reattach: string(text)}
}

// Start starts a command. finish waits for it and returns what it printed and its exit code.
func (r *Terminal) Start(t *testing.T, config string, arguments ...string) (command *exec.Cmd, finish func() (string, int)) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Directory, "main.tf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command = exec.CommandContext(context.WithoutCancel(t.Context()), "terraform", append(arguments, "-no-color")...)
	command.Dir = r.Directory
	command.Env = slices.Concat(os.Environ(), []string{"TF_REATTACH_PROVIDERS=" + r.reattach, "TF_IN_AUTOMATION=1"}, r.Environment)
	printed := &bytes.Buffer{} // one writer for both is written to by one goroutine
	command.Stdout, command.Stderr = printed, printed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, func() (string, int) {
		if err := command.Wait(); err != nil && command.ProcessState == nil {
			t.Fatal(err)
		}
		return printed.String(), command.ProcessState.ExitCode()
	}
}

// Run runs a command to its end, and returns what it printed and its exit code.
func (r *Terminal) Run(t *testing.T, config string, arguments ...string) (string, int) {
	t.Helper()
	_, finish := r.Start(t, config, arguments...)
	return finish()
}

// ExpectNoChanges checks that a plan has nothing to do.
func (r *Terminal) ExpectNoChanges(t *testing.T, config string) {
	t.Helper()
	if printed, code := r.Run(t, config, "plan", "-detailed-exitcode"); code != 0 {
		t.Errorf("plan -detailed-exitcode exited with %d:\n%s", code, printed)
	}
}
