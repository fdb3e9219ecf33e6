package fakekubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"

	"github.com/elastic-training/terraform-provider-elastic/internal/eventually"
)

func TestLogReading(t *testing.T) {
	log, err := createContainerLog(filepath.Join(t.TempDir(), "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", maxLineBytes+10)
	log.capture("stdout", strings.NewReader("one\ntwo\n"+long+"\nlast"))
	log.capture("stderr", strings.NewReader("problem\n"))
	for name, c := range map[string]struct {
		options logs.LogOptions
		want    string
	}{
		"everything":                          {logs.LogOptions{}, "one\ntwo\n" + long + "\nlast\nproblem\n"},
		"the last lines":                      {logs.LogOptions{TailLines: new(int64(2))}, "last\nproblem\n"},
		"no lines":                            {logs.LogOptions{TailLines: new(int64(0))}, ""},
		"more lines than there are":           {logs.LogOptions{TailLines: new(int64(99))}, "one\ntwo\n" + long + "\nlast\nproblem\n"},
		"a number of bytes":                   {logs.LogOptions{LimitBytes: new(int64(6))}, "one\ntw"},
		"nothing before a time in the future": {logs.LogOptions{Since: time.Now().Add(time.Hour)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := readLog(t.Context(), log.path, nil, &c.options, &out, &out); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("got %.60q, want %.60q", out.String(), c.want)
			}
		})
	}
	t.Run("one stream", func(t *testing.T) {
		var out bytes.Buffer
		if err := readLog(t.Context(), log.path, nil, &logs.LogOptions{}, nil, &out); err != nil || out.String() != "problem\n" {
			t.Errorf("got %.60q, %v", out.String(), err)
		}
	})
	t.Run("following ends with the container", func(t *testing.T) {
		var out eventually.Text
		done := make(chan error, 1)
		go func() {
			done <- readLog(t.Context(), log.path, log, &logs.LogOptions{TailLines: new(int64(1)), Follow: true}, &out, &out)
		}()
		out.Await(t, "problem\n")
		log.write("stdout", runtimeapi.LogTagFull, []byte("later"))
		log.close()
		if err := <-done; err != nil || out.String() != "problem\nlater\n" {
			t.Errorf("got %q, %v", out.String(), err)
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
	go func() { done <- readLog(t.Context(), log.path, log, &logs.LogOptions{Follow: true}, &out, &out) }()
	for i := range lines {
		log.write("stdout", runtimeapi.LogTagFull, line)
		if i%100 == 0 { // one generation is kept: a reader that is slower than that loses lines, as with a kubelet
			eventually.True(t, "all lines so far are followed", func() bool { return out.bytes.Load() == int64((i+1)*(len(line)+1)) })
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
