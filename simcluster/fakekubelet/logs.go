package fakekubelet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A container's log is a file of the Container Runtime Interface's format: each
// line is "TIME STREAM TAG TEXT", where TAG is F for a whole line and P for a part
// of one that continues in the next.
const (
	logTime      = "2006-01-02T15:04:05.000000000Z07:00"
	tagFull      = "F"
	tagPart      = "P"
	maxLineBytes = 16 << 10 // longer lines are written in parts
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

// A containerLog is the log of one run of a container while it runs: it takes
// output, and notifies followers when there is more.
type containerLog struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int           // of file
	more chan struct{} // closed and replaced with every write; nil once the log is complete
}

func createContainerLog(path string) (*containerLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	return &containerLog{path: path, file: file, more: make(chan struct{})}, nil
}

// capture writes what comes from output, line by line, until it ends.
func (l *containerLog) capture(stream string, output io.Reader) {
	reader := bufio.NewReaderSize(output, maxLineBytes)
	for {
		line, err := reader.ReadSlice('\n')
		if len(line) > 0 {
			tag := tagFull
			if errors.Is(err, bufio.ErrBufferFull) {
				tag = tagPart
			}
			l.write(stream, tag, bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return // the end, or a pipe that was closed on a straggler
		}
	}
}

func (l *containerLog) write(stream, tag string, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		return
	}
	// One write for one line, so that lines of two streams do not mix. A full disk
	// loses log lines, but must not end the container.
	n, _ := l.file.Write(fmt.Appendf(nil, "%s %s %s %s\n", time.Now().UTC().Format(logTime), stream, tag, text))
	if l.size += n; l.size > maxLogBytes {
		l.rotate()
	}
	close(l.more)
	l.more = make(chan struct{})
}

// rotate begins another file. Where that cannot be had, the log continues in the one that there is.
func (l *containerLog) rotate() {
	if os.Rename(l.path, l.path+".1") != nil {
		return
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		_ = os.Rename(l.path+".1", l.path)
		return
	}
	_ = l.file.Close()
	l.file, l.size = file, 0
}

// close marks the log as complete.
func (l *containerLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.more == nil {
		return
	}
	_ = l.file.Close()
	close(l.more)
	l.more = nil
}

// changed is closed with the next write or at the end; nil when the log is
// complete. A reader must ask before it reads, so that it misses nothing.
func (l *containerLog) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.more
}

// logOptions are the query parameters of a log request (corev1.PodLogOptions).
type logOptions struct {
	follow     bool
	previous   bool
	timestamps bool
	since      time.Time // zero for all
	tailLines  int64     // negative for all
	limitBytes int64     // negative for no limit
	stream     string    // "stdout", "stderr" or "" for both
}

// A logLine is one line of a log file.
type logLine struct {
	time    time.Time
	stamp   string
	stream  string
	partial bool
	text    []byte
}

// parseLogLine reads one line (without its newline) of the format above.
func parseLogLine(line []byte) (logLine, error) {
	fields := bytes.SplitN(line, []byte(" "), 4)
	if len(fields) != 4 {
		return logLine{}, fmt.Errorf("log line %q does not have the form TIME STREAM TAG TEXT", line)
	}
	at, err := time.Parse(time.RFC3339Nano, string(fields[0]))
	if err != nil {
		return logLine{}, fmt.Errorf("log line %q: %w", line, err)
	}
	return logLine{time: at, stamp: string(fields[0]), stream: string(fields[1]), partial: string(fields[2]) == tagPart, text: fields[3]}, nil
}

// A logPrinter writes lines as a log request wants them.
type logPrinter struct {
	options logOptions
	out     io.Writer
	midLine bool // the last line was partial: no time stamp before the next
}

// print writes one line and reports whether the limit of bytes is reached.
func (p *logPrinter) print(line logLine) (full bool, err error) {
	if line.time.Before(p.options.since) || (p.options.stream != "" && p.options.stream != line.stream) {
		return false, nil
	}
	var text []byte
	if p.options.timestamps && !p.midLine {
		text = append(append(text, line.stamp...), ' ')
	}
	text = append(text, line.text...)
	if !line.partial {
		text = append(text, '\n')
	}
	p.midLine = line.partial
	if limit := p.options.limitBytes; limit >= 0 {
		if int64(len(text)) >= limit {
			text, full = text[:limit], true
		}
		p.options.limitBytes -= int64(len(text))
	}
	_, err = p.out.Write(text)
	return full, err
}

// tailOffset is where the last n whole lines of the file begin. Parts of a line
// count as none.
func tailOffset(file io.ReadSeeker, n int64) (int64, error) {
	if n < 0 {
		return 0, nil
	}
	var starts []int64 // of the last n lines, a ring
	reader := bufio.NewReader(file)
	var offset, count int64
	begins := true
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 && begins && n > 0 {
			if int64(len(starts)) < n {
				starts = append(starts, offset)
			} else {
				starts[count%n] = offset
			}
			count++
		}
		offset += int64(len(line))
		if parsed, parseErr := parseLogLine(bytes.TrimSuffix(line, []byte("\n"))); parseErr == nil {
			begins = !parsed.partial
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
	}
	switch {
	case n == 0:
		return offset, nil
	case count <= n:
		return 0, nil
	default:
		return starts[count%n], nil
	}
}
