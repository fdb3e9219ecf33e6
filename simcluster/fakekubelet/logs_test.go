package fakekubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/patience"
)

func TestLogReading(t *testing.T) {
	log, err := createContainerLog(filepath.Join(t.TempDir(), "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", maxLineBytes+10)
	log.capture("stdout", strings.NewReader("one\ntwo\n"+long+"\nlast"))
	log.capture("stderr", strings.NewReader("problem\n"))
	all := logOptions{tailLines: -1, limitBytes: -1}
	for name, c := range map[string]struct {
		change func(*logOptions)
		want   string
	}{
		"everything":                          {func(*logOptions) {}, "one\ntwo\n" + long + "\nlast\nproblem\n"},
		"the last lines":                      {func(o *logOptions) { o.tailLines = 2 }, "last\nproblem\n"},
		"a long line counts once":             {func(o *logOptions) { o.tailLines = 3 }, long + "\nlast\nproblem\n"},
		"no lines":                            {func(o *logOptions) { o.tailLines = 0 }, ""},
		"more lines than there are":           {func(o *logOptions) { o.tailLines = 99 }, "one\ntwo\n" + long + "\nlast\nproblem\n"},
		"a number of bytes":                   {func(o *logOptions) { o.limitBytes = 6 }, "one\ntw"},
		"one stream":                          {func(o *logOptions) { o.stream = "stderr" }, "problem\n"},
		"nothing before a time in the future": {func(o *logOptions) { o.since = time.Now().Add(time.Hour) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			options := all
			c.change(&options)
			var out bytes.Buffer
			if err := printLog(&out, log.path, options); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got %.60q, want %.60q", out.String(), c.want)
			}
		})
	}
	t.Run("following ends with the container", func(t *testing.T) {
		var out bytes.Buffer
		flushed := make(chan struct{}, 100)
		done := make(chan error, 1)
		options := all
		options.tailLines = 1
		go func() {
			done <- followLog(t.Context(), &out, func() { flushed <- struct{}{} }, log.path, log, options)
		}()
		<-flushed
		log.write("stdout", tagFull, []byte("later"))
		log.close()
		if err := <-done; err != nil || out.String() != "problem\nlater\n" {
			t.Errorf("got %q, %v", out.String(), err)
		}
	})
}

func FuzzParseLogLine(f *testing.F) {
	f.Add([]byte("2026-01-01T00:00:00.000000000Z stdout F text of a line"))
	f.Add([]byte("nonsense"))
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := parseLogLine(text)
		if err == nil && !bytes.HasSuffix(text, line.text) {
			t.Errorf("%q gives the text %q", text, line.text)
		}
	})
}

// countingWriter counts what is written to it.
type countingWriter struct{ bytes atomic.Int64 }

func (w *countingWriter) Write(b []byte) (int, error) {
	w.bytes.Add(int64(len(b)))
	return len(b), nil
}

func TestALogThatIsTooLongBeginsAnewAndWhoFollowsItMissesNothing(t *testing.T) {
	log, err := createContainerLog(filepath.Join(t.TempDir(), "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 3 * maxLogBytes / maxLineBytes
	line := bytes.Repeat([]byte("x"), maxLineBytes-10)
	var out countingWriter
	done := make(chan error, 1)
	caughtUp := make(chan struct{}, 2*lines)
	go func() {
		done <- followLog(t.Context(), &out, func() { caughtUp <- struct{}{} }, log.path, log, logOptions{tailLines: -1, limitBytes: -1})
	}()
	<-caughtUp
	for i := range lines {
		log.write("stdout", tagFull, line)
		// One generation is kept: a reader that is slower than that loses lines, as with a kubelet.
		for i%100 == 0 && out.bytes.Load() < int64((i+1)*(len(line)+1)) {
			select {
			case <-caughtUp:
			case <-time.After(patience.Medium):
				t.Fatalf("after %d lines of %d bytes only %d bytes were followed", i+1, len(line)+1, out.bytes.Load())
			}
		}
	}
	log.close()
	if err := <-done; err != nil || out.bytes.Load() != int64(lines*(len(line)+1)) {
		t.Errorf("%d bytes were followed, of %d: %v", out.bytes.Load(), lines*(len(line)+1), err)
	}
	for _, path := range []string{log.path, log.path + ".1"} {
		if info, err := os.Stat(path); err != nil || info.Size() > maxLogBytes+2*maxLineBytes {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}

func TestALineThatIsSeenHalfWrittenIsReadWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	if err := os.WriteFile(path, []byte("2026-01-01T00:00:00.000000000Z stdout F the beg"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	reader, err := openLog(path, &out, logOptions{tailLines: -1, limitBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.close()
	if _, err := reader.copy(); err != nil || out.Len() > 0 {
		t.Fatalf("half a line: %q, %v", out.String(), err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString("inning and the end\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.copy(); err != nil || out.String() != "the beginning and the end\n" {
		t.Errorf("the whole line: %q, %v", out.String(), err)
	}
}
