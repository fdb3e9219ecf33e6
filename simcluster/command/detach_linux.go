package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/simcluster/controlplane"
)

// supervisorLog is the log of a supervisor in the background.
const supervisorLog = "supervisor"

// kubeconfigPrefix begins the line by which a supervisor says that the cluster is ready.
const kubeconfigPrefix = "KUBECONFIG="

// errSupervisorEnded stands for an error that the supervisor has already put into words.
var errSupervisorEnded = errors.New("the cluster did not start")

// startSupervisor starts this very command line with --foreground, in a session of its own so that no terminal's ^C or
// hangup reaches it. It writes to a new log; the last one is kept as supervisor.log.1.
func startSupervisor(layout controlplane.Layout) (*exec.Cmd, error) {
	path := layout.Log(supervisorLog)
	if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("keeping the supervisor's last log: %w", err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // Nothing is written through this descriptor.
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the simcluster executable: %w", err)
	}
	supervisor := exec.Command(executable, append(os.Args[1:len(os.Args):len(os.Args)], "--foreground")...)
	supervisor.Stdout, supervisor.Stderr = log, log
	supervisor.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := supervisor.Start(); err != nil {
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	return supervisor, nil
}

// follow copies the supervisor's lines until the one that says that the cluster is ready, which goes to stdout and the
// others to stderr, or until the supervisor or ctx ends.
func follow(ctx context.Context, log io.Reader, ended <-chan error, stdout, stderr io.Writer) (ready bool, err error) {
	lines := bufio.NewReader(log)
	var line bytes.Buffer // what there is of the line that is being written
	for over := false; ; {
		part, err := lines.ReadString('\n')
		line.WriteString(part)
		switch {
		case err == nil:
			text := line.String()
			line.Reset()
			if strings.HasPrefix(text, kubeconfigPrefix) {
				_, err := io.WriteString(stdout, text)
				return true, err
			}
			if _, err := io.WriteString(stderr, text); err != nil {
				return false, err
			}
			continue
		case !errors.Is(err, io.EOF):
			return false, fmt.Errorf("reading the supervisor's log: %w", err)
		case over:
			return false, errSupervisorEnded
		}
		select {
		case <-ended:
			over = true // and read what it wrote last
		case <-ctx.Done():
			return false, nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}
