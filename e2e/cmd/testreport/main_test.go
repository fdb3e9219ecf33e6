package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoRuns has a test that failed and passed when it was repeated, one that failed twice, and one that passed.
const twoRuns = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestFlaky","Output":"=== RUN\n"}
{"Action":"fail","Package":"p","Test":"TestFlaky","Elapsed":1}
{"Action":"fail","Package":"p","Test":"TestBroken","Elapsed":1}
{"Action":"pass","Package":"p","Test":"TestSound","Elapsed":1}
{"Action":"fail","Package":"p","Elapsed":3}
{"Action":"skip","Package":"q","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestFlaky","Elapsed":1}
{"Action":"fail","Package":"p","Test":"TestBroken","Elapsed":1}
{"Action":"pass","Package":"p","Elapsed":2.5}
{"Action":"pass","Package":"r","Elapsed":7}
`

func report(t *testing.T, events string) (dir, printed string, err error) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "events.json")
	if err := os.WriteFile(path, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = run(&out, dir, []string{path})
	return dir, out.String(), err
}

func TestReportNamesTheTestsThatPassedOnlyWhenRepeated(t *testing.T) {
	dir, printed, err := report(t, twoRuns)
	if err != nil {
		t.Fatal(err)
	}
	want := "The packages that took longest:\n     7.0 s  r\n     5.5 s  p\n\n" +
		"These tests failed, and passed when they were repeated. Each is a bug of the test or of the code:\n  p TestFlaky: failed 1 of 2 times\n"
	if printed != want {
		t.Errorf("printed\n%s\nwant\n%s", printed, want)
	}
	flakes, err := os.ReadFile(filepath.Join(dir, "flakes.json"))
	if err != nil || strings.Join(strings.Fields(string(flakes)), "") != `[{"package":"p","test":"TestFlaky","runs":2,"failures":1}]` {
		t.Errorf("%s %v", flakes, err)
	}
}

func TestReportOfARunWithoutFlakesSaysNothingOfThem(t *testing.T) {
	dir, printed, err := report(t, `{"Action":"pass","Package":"p","Elapsed":1}`)
	if err != nil || strings.Contains(printed, "repeated") {
		t.Errorf("%s %v", printed, err)
	}
	if flakes, err := os.ReadFile(filepath.Join(dir, "flakes.json")); err != nil || string(flakes) != "[]\n" {
		t.Errorf("%s %v", flakes, err)
	}
}

func TestReportRefusesWhatIsNoEvent(t *testing.T) {
	if _, _, err := report(t, "FAIL p [build failed]\n"); err == nil || !strings.Contains(err.Error(), "events.json") {
		t.Error(err)
	}
}
