package fakekubelet

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"time"
)

// parseLogOptions reads the query of a log request, as kubectl and the API server
// write it.
func parseLogOptions(query url.Values, now time.Time) (logOptions, error) {
	options := logOptions{tailLines: -1, limitBytes: -1}
	for name, target := range map[string]*bool{"follow": &options.follow, "previous": &options.previous, "timestamps": &options.timestamps} {
		if text := query.Get(name); text != "" {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return logOptions{}, fmt.Errorf("%s=%q is neither true nor false", name, text)
			}
			*target = value
		}
	}
	seconds := int64(-1)
	for name, target := range map[string]*int64{"tailLines": &options.tailLines, "limitBytes": &options.limitBytes, "sinceSeconds": &seconds} {
		text := query.Get(name)
		if text == "" || text == "all" {
			continue
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || value < 0 {
			return logOptions{}, fmt.Errorf("%s=%q is no number from 0 on", name, text)
		}
		*target = value
	}
	if seconds >= 0 {
		options.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if text := query.Get("sinceTime"); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return logOptions{}, fmt.Errorf("sinceTime=%q is no time in RFC 3339's form", text)
		}
		options.since = at
	}
	switch stream := query.Get("stream"); stream {
	case "", "All":
	case "Stdout", "Stderr":
		options.stream = map[string]string{"Stdout": "stdout", "Stderr": "stderr"}[stream]
	default:
		return logOptions{}, fmt.Errorf("stream=%q is none of All, Stdout and Stderr", stream)
	}
	return options, nil
}

// printLog writes what a log file holds now.
func printLog(out io.Writer, path string, options logOptions) error {
	reader, err := openLog(path, out, options)
	if err != nil {
		return err
	}
	defer reader.close()
	_, err = reader.copy()
	return err
}

// followLog writes a log as it grows, and returns when it is complete, or when ctx
// ends. flush is called whenever there is nothing more to write for now. A nil log is
// one that is complete.
func followLog(ctx context.Context, out io.Writer, flush func(), path string, log *containerLog, options logOptions) error {
	reader, err := openLog(path, out, options)
	if err != nil {
		return err
	}
	defer reader.close()
	for {
		var more <-chan struct{}
		if log != nil {
			more = log.changed() // before reading, so that nothing is missed
		}
		full, err := reader.copy()
		if err == nil && !full {
			full, err = reader.copyNext()
		}
		if err != nil || full {
			return err
		}
		flush()
		if more == nil {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// A logReader prints a log file from where it stopped.
type logReader struct {
	file    *os.File
	reader  *bufio.Reader
	begun   []byte // of a line whose end is not in the file yet
	printer logPrinter
}

func openLog(path string, out io.Writer, options logOptions) (*logReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	offset, err := tailOffset(file, options.tailLines)
	if err == nil {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("read log %s: %w", path, err)
	}
	return &logReader{file: file, reader: bufio.NewReader(file), printer: logPrinter{options: options, out: out}}, nil
}

// copyNext continues in the file that has taken this one's place, where one has. Nothing is written to this one after
// that.
func (r *logReader) copyNext() (full bool, err error) {
	was, err := r.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read log %s: %w", r.file.Name(), err)
	}
	if now, err := os.Stat(r.file.Name()); err != nil || os.SameFile(was, now) {
		return false, nil //nolint:nilerr // a log that has been removed has no more lines
	}
	if full, err := r.copy(); err != nil || full {
		return full, err
	}
	next, err := os.Open(r.file.Name())
	if err != nil {
		return false, fmt.Errorf("read log: %w", err)
	}
	_ = r.file.Close()
	r.file, r.reader, r.begun = next, bufio.NewReader(next), nil
	return r.copy()
}

func (r *logReader) close() { _ = r.file.Close() }

// copy prints all whole lines that there are, and reports whether the limit of bytes is reached. A line is written at
// once, but a file system may show a reader its beginning first: copy keeps that for the next call.
func (r *logReader) copy() (full bool, err error) {
	for {
		text, err := r.reader.ReadBytes('\n')
		text = append(r.begun, text...)
		r.begun = nil
		if errors.Is(err, io.EOF) {
			r.begun = text
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read log %s: %w", r.file.Name(), err)
		}
		line, err := parseLogLine(bytes.TrimSuffix(text, []byte("\n")))
		if err != nil {
			continue // not written by us: a container that found its own log
		}
		if full, err := r.printer.print(line); err != nil || full {
			return full, err
		}
	}
}
