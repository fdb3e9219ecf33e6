package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
)

func TestTheCommandsExitCodeIsOurs(t *testing.T) {
	for name, test := range map[string]struct {
		script   string
		code     int
		wantText string
	}{
		"all went well":       {script: `test "$CLUSTER" = c`},
		"tests failed":        {script: "exit 3", code: 3},
		"it was killed":       {script: "kill -SEGV $$", code: 1, wantText: "segmentation fault"},
		"there is no command": {code: 1, wantText: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			command := []string{"sh", "-c", test.script}
			if test.script == "" {
				command = []string{filepath.Join(t.TempDir(), "none")}
			}
			code, err := use(t.Context(), command, []string{"CLUSTER=c"})
			if code != test.code || (err == nil) != (test.wantText == "") || err != nil && !strings.Contains(err.Error(), test.wantText) {
				t.Errorf("code %d, error %v", code, err)
			}
		})
	}
}

func TestAnInterruptedCommandEndsInOrder(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began := filepath.Join(t.TempDir(), "began")
	ended := filepath.Join(t.TempDir(), "ended")
	script := `trap 'touch "$0"; exit 0' TERM; touch "$1"; while :; do sleep 0.05; done`
	interrupted := make(chan error, 1)
	go func() {
		_, err := use(ctx, []string{"sh", "-c", script, ended, began}, nil)
		interrupted <- err
	}()
	eventually.True(t, "the command begins", func() bool { _, err := os.Stat(began); return err == nil })
	cancel()
	if err := <-interrupted; err == nil {
		t.Error("an interrupted command is no success")
	}
	if _, err := os.Stat(ended); err != nil {
		t.Error("it had no time to clean up")
	}
}

// What a panicking test leaves: a process in a group of its own, whose parent is dead.
func TestNothingThatTheCommandStartedOutlivesIt(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("only Linux gives orphans to an ancestor")
	}
	file := filepath.Join(t.TempDir(), "pid")
	script := `setsid sh -c 'echo $$ > "$0"; exec sleep 1000' "$0" & until [ -s "$0" ]; do sleep 0.05; done; kill -KILL $$`
	if _, err := use(t.Context(), []string{"sh", "-c", script, file}, nil); err == nil {
		t.Error("a killed command is no success")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(orphan, 0); err == nil {
		t.Errorf("process %d lives", orphan)
	}
}
