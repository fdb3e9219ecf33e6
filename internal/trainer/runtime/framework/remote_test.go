package framework

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
)

// hosted returns options that run testdata/counting.py in another container, and that container's output.
func hosted(t *testing.T) (Options, *eventually.Text) {
	t.Helper()
	o, _ := counting(t)
	o.Output = nil
	// A test's directory may be too long for a socket's path.
	dir, err := os.MkdirTemp("", "shared")
	if err != nil {
		t.Fatal(err)
	}
	o.Shared = dir
	ctx, stop := context.WithCancel(context.Background())
	log, ended := &eventually.Text{}, make(chan error)
	go func() { ended <- Host(ctx, dir, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return o, log
}

func TestAScriptInAnotherContainerComputesWhatAChildComputes(t *testing.T) {
	here, _ := counting(t)
	there, _ := hosted(t)
	child, remote := start(t, here), start(t, there)
	state := initialState(child)
	if got := initialState(remote); !slices.Equal(got, state) {
		t.Fatalf("initial state %v, of a child %v", got, state)
	}
	want, got := make([]float32, counted+2), make([]float32, counted+2)
	for n, out := range map[*Network][]float32{child: want, remote: got} {
		if _, err := n.Gradient(state, minibatch(4, 7, 8), 3, 0, 1, 3, out, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("gradient %v, of a child %v", got, want)
	}
}

func TestAScriptInAnotherContainerThatDiesIsStartedAgain(t *testing.T) {
	t.Setenv("COUNTING_DIES_AT", "5")
	o, log := hosted(t)
	n := start(t, o)
	state, out := initialState(n), make([]float32, counted+2)
	for range 2 {
		_, err := n.Gradient(state, minibatch(4), 1, 5, 0, 3, out, nil)
		if err == nil || !strings.Contains(err.Error(), "ended with exit code 3") || !strings.Contains(err.Error(), "the last line") {
			t.Fatal(err)
		}
		if _, err := n.Gradient(state, minibatch(4), 1, 6, 0, 3, out, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(log.String(), "counting.py: the last line") {
		t.Errorf("the container's log: %s", log)
	}
}

func TestTheEndOfAScriptInAnotherContainerComesWithItsLastLines(t *testing.T) {
	o, _ := hosted(t)
	o.Script = []byte("import sys\nprint('no such thing', file=sys.stderr)\nsys.exit(3)\n")
	_, err := Start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "ended with exit code 3") || !strings.Contains(err.Error(), "no such thing") {
		t.Error(err)
	}
}

func TestACommandThatAnotherContainerDoesNotHaveIsNamed(t *testing.T) {
	o, _ := hosted(t)
	o.Command = []string{"/no/such/python"}
	_, err := Start(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "/no/such/python") {
		t.Error(err)
	}
}
