package timeline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

// pageFile, when set, is where the good scenario's page is written, to be looked at.
const pageFile = "TIMELINE_PAGE"

// goodLog is the log of a scenario as it should go.
func goodLog(t interface{ Fatal(args ...any) }, scenario string) []eventlog.Event {
	events, err := eventlog.ReadFile(filepath.Join("..", "eventlog", "testdata", scenario+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func render(t *testing.T, events []eventlog.Event) string {
	t.Helper()
	var page bytes.Buffer
	if err := Render(&page, "Elastic scheduling", events); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func TestThePageShowsEveryPodNodeAndPreemption(t *testing.T) {
	page := render(t, goodLog(t, "elastic-scheduling"))
	for _, text := range []string{
		"waiting for capacity", "node-0 · 3.92 CPU", "node-2 · 3.92 CPU", "worker 0 waited", "worker 2 waited 11 s",
		`class="taken"`, "preempted", "1,000 of 1,000", "97.2 %", "is the same, bit for bit, as",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
	if path := os.Getenv(pageFile); path != "" {
		if err := os.WriteFile(filepath.Clean(path), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestThePageShowsWhatAStoryBreaks(t *testing.T) {
	page := render(t, goodLog(t, "chaos"))
	for text, times := range map[string]int{
		`class="gone" x=`:         2, // one node, in both pictures
		`class="taken" cx="11"`:   1, // the legend's
		`class="taken" cx=`:       1 + 2*4,
		`class="curve job0"`:      2 * 2, // one of progress for each master
		"the node is dead</span>": 1,
		"taken away</span>":       1,
	} {
		if got := strings.Count(page, text); got != times {
			t.Errorf("the page shows %q %d times, want %d", text, got, times)
		}
	}
}

func TestThePageNeedsNothingFromElsewhere(t *testing.T) {
	page := render(t, goodLog(t, "elastic-scheduling"))
	for _, text := range []string{"http:", "https:", "<script", "@import", "src="} {
		if strings.Contains(page, text) {
			t.Errorf("the page holds %q", text)
		}
	}
}

func TestEveryLogGivesTheSamePageTwiceWithWellFormedPictures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := goodLog(t, "elastic-scheduling")
		events = events[:rapid.IntRange(0, len(events)).Draw(t, "the log's length")]
		hostile := rapid.StringMatching(`[<>&"'\pL ]{0,12}`).Draw(t, "a text")
		for _, event := range events {
			if event.Pod != nil && event.Pod.Unschedulable != "" {
				event.Pod.Unschedulable = hostile
			}
			if event.Node != nil {
				event.Node.CPU = hostile
			}
		}
		var first, second bytes.Buffer
		err := Render(&first, hostile, events)
		if errors.Is(err, ErrNothing) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := Render(&second, hostile, events); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("the second page differs from the first (%v)", err)
		}
		rest := first.String()
		pictures := 0
		for {
			_, after, found := strings.Cut(rest, `<svg class="`)
			if !found {
				break
			}
			picture, behind, _ := strings.Cut(after, "</svg>")
			wellFormed(t, `<svg class="`+picture+"</svg>")
			pictures, rest = pictures+1, behind
		}
		if pictures < 2 {
			t.Fatalf("%d pictures", pictures)
		}
	})
}

func wellFormed(t *rapid.T, picture string) {
	decoder := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in:\n%s", err, picture)
		}
	}
}

func TestBarsInARowNeverOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
		s := scale{from: from, to: from.Add(100 * time.Second), x0: 0, x1: rapid.Float64Range(300, 2000).Draw(t, "width")}
		var bars []bar
		for range rapid.IntRange(0, 30).Draw(t, "bars") {
			start := from.Add(time.Duration(rapid.IntRange(0, 99_000).Draw(t, "start ms")) * time.Millisecond)
			end := start.Add(time.Duration(rapid.IntRange(0, 50_000).Draw(t, "length ms")) * time.Millisecond)
			bars = append(bars, place(s, bar{}, start, end, start, time.Time{}, "worker 1"))
		}
		rows := stack(bars)
		for i, a := range bars {
			if a.row >= rows {
				t.Fatalf("row %d of %d", a.row, rows)
			}
			for _, b := range bars[:i] {
				a1, a2 := a.occupied()
				b1, b2 := b.occupied()
				if a.row == b.row && a1 < b2 && b1 < a2 {
					t.Fatalf("bars at %g–%g and %g–%g share row %d", a1, a2, b1, b2, a.row)
				}
			}
		}
	})
}
