package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// maxLine is the longest recording that is read, in bytes.
const maxLine = 256 << 20

// Read goes through the recordings of some paths: a file .json (one recording), .jsonl (one a line), either also with
// .gz, or a directory of such files in order of name, those below it included. Recordings are read one at a time. An
// error names file and line; it is the last thing given.
func Read(paths ...string) iter.Seq2[*Scenario, error] {
	return func(yield func(*Scenario, error) bool) {
		for _, path := range paths {
			files, err := filesOf(path)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, file := range files {
				if !readFile(file, yield) {
					return
				}
			}
		}
	}
}

// filesOf lists the recordings of a path.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading recordings: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && isRecording(file) {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading recordings: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("reading recordings: directory %s has no file .json, .jsonl, .json.gz or .jsonl.gz", path)
	}
	return files, nil
}

func isRecording(file string) bool {
	name := strings.TrimSuffix(file, ".gz")
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")
}

// readFile gives a file's recordings. It returns false if there is no use in going on.
func readFile(file string, yield func(*Scenario, error) bool) bool {
	in, err := os.Open(file)
	if err != nil {
		yield(nil, fmt.Errorf("reading recordings: %w", err))
		return false
	}
	defer in.Close()
	var r io.Reader = in
	if strings.HasSuffix(file, ".gz") {
		zip, err := gzip.NewReader(in)
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", file, err))
			return false
		}
		defer zip.Close()
		r = zip
	}
	each := Lines
	if !strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".jsonl") {
		each = Whole
	}
	for s, err := range each(r) {
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", file, err))
			return false
		}
		if !yield(s, nil) {
			return false
		}
	}
	return true
}

// Lines reads one recording a line; empty lines are skipped. Errors name the line.
func Lines(r io.Reader) iter.Seq2[*Scenario, error] {
	return func(yield func(*Scenario, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		n := 0
		for lines.Scan() {
			n++
			text := bytes.TrimSpace(lines.Bytes())
			if len(text) == 0 {
				continue
			}
			s, err := Parse(text)
			if err != nil {
				yield(nil, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(nil, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}

// Whole reads a single recording.
func Whole(r io.Reader) iter.Seq2[*Scenario, error] {
	return func(yield func(*Scenario, error) bool) {
		text, err := io.ReadAll(io.LimitReader(r, maxLine))
		if err != nil {
			yield(nil, err)
			return
		}
		yield(Parse(text))
	}
}

// Parse reads a recording and refuses what cannot be one. Syntax errors name their line.
func Parse(text []byte) (*Scenario, error) {
	var s Scenario
	if err := json.Unmarshal(text, &s); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && bytes.Contains(text, []byte("\n")) {
			before := text[:min(int64(len(text)), syntax.Offset)]
			return nil, fmt.Errorf("line %d of the recording: %w", 1+bytes.Count(before, []byte("\n")), err)
		}
		return nil, err
	}
	switch {
	case s.Format != Format:
		return nil, fmt.Errorf("format %d is not known, only %d is; is this a recording?", s.Format, Format)
	case s.Name == "":
		return nil, errors.New("the recording has no name")
	case len(s.Outcomes) != len(s.Steps) && len(s.Outcomes) > 0:
		return nil, fmt.Errorf("recording %s has %d steps, but %d outcomes", s.Name, len(s.Steps), len(s.Outcomes))
	}
	return &s, nil
}
