package fakekubelet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

// A container's log is a file of the Container Runtime Interface's format: each
// line is "TIME STREAM TAG TEXT", where TAG is F for a whole line and P for a part
// of one that continues in the next.
const (
	logTime      = "2006-01-02T15:04:05.000000000Z07:00"
	maxLineBytes = 16 << 10 // longer lines are written in parts
	logMode      = 0o600
)

// logFile is where attempt n of a container logs to.
func logFile(logsDir, namespace, pod string, uid types.UID, container string, attempt int32) string {
	return filepath.Join(podLogDir(logsDir, namespace, pod, uid), container, strconv.Itoa(int(attempt))+".log")
}

func podLogDir(logsDir, namespace, pod string, uid types.UID) string {
	return filepath.Join(logsDir, namespace+"_"+pod+"_"+string(uid))
}

// maxLogBytes is a kubelet's containerLogMaxSize: a log that is longer is kept as NAME.log.1, and another begins, so
// that a container that prints without an end fills no disk.
const maxLogBytes = 10 << 20

// A containerLog is the log of one run of a container while it runs: it takes output.
type containerLog struct {
	path string

	mu       sync.Mutex
	file     *os.File
	size     int       // of file
	rotated  time.Time // when file was begun in the place of another
	complete bool
}

func createContainerLog(path string) (*containerLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, logMode)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	return &containerLog{path: path, file: file}, nil
}

// capture writes what comes from output, line by line, until it ends.
func (l *containerLog) capture(stream string, output io.Reader) {
	reader := bufio.NewReaderSize(output, maxLineBytes)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			tag := runtimeapi.LogTagFull
			if errors.Is(err, bufio.ErrBufferFull) {
				tag = runtimeapi.LogTagPartial
			}
			l.write(stream, tag, bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // the end, or a pipe that was closed on a straggler
		}
	}
}

func (l *containerLog) write(stream string, tag runtimeapi.LogTag, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.complete {
		return
	}
	// One write for one line, so that lines of two streams do not mix. A full disk
	// loses log lines, but must not end the container.
	n, _ := l.file.Write(fmt.Appendf(nil, "%s %s %s %s\n", time.Now().UTC().Format(logTime), stream, tag, text))
	if l.size += n; l.size > maxLogBytes {
		l.rotate()
	}
}

// rotate begins another file. Where that cannot be had, the log continues in the one that there is.
func (l *containerLog) rotate() {
	if os.Rename(l.path, l.path+".1") != nil {
		return
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, logMode)
	if err != nil {
		_ = os.Rename(l.path+".1", l.path)
		return
	}
	_ = l.file.Close()
	l.file, l.size, l.rotated = file, 0, time.Now()
}

// close marks the log as complete, and has those who follow it look at it once more.
func (l *containerLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.complete {
		return
	}
	l.complete = true
	_ = l.file.Close()
	_ = os.Chmod(l.path, logMode) // a change that is seen; nothing else is missed without it for longer than a second
}

// rotationNoticed is how long after a rotation its followers have the new file, unless they are so slow that they lose
// lines anyway.
const rotationNoticed = 5 * time.Second

// mayGrow reports whether a follower has to wait for more. The kubelet's reader looks into no other file once a container
// has ended, so one that ends right after a rotation counts as running for a moment longer.
func (l *containerLog) mayGrow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.complete || time.Since(l.rotated) < rotationNoticed
}

// readLog writes what options ask for of a log to the writers of the two streams, of which nil is for one that is not
// wanted. It follows a log, where that is asked for, until it is complete or ctx ends. A nil log is one that is complete.
func readLog(ctx context.Context, path string, log *containerLog, options *logs.LogOptions, stdout, stderr io.Writer) error {
	return logs.ReadLogs(ctx, path, "", options, logRuntime{log: log}, stdout, stderr)
}

// logRuntime is the container runtime that the kubelet's reader of logs asks whether the container still runs.
type logRuntime struct {
	cri.RuntimeService // nothing else is asked
	log                *containerLog
}

func (r logRuntime) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	state := runtimeapi.ContainerState_CONTAINER_EXITED
	if r.log != nil && r.log.mayGrow() {
		state = runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: state}}, nil
}
