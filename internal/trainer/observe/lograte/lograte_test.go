package lograte_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/observe/lograte"
)

func TestARepeatedWarningIsWrittenAFewTimesAndThenCounted(t *testing.T) {
	var text strings.Builder
	h := lograte.New(slog.NewTextHandler(&text, nil))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	warn := func(level slog.Level, message string) {
		t.Helper()
		record := slog.NewRecord(at, level, message, 0)
		if err := h.WithAttrs([]slog.Attr{slog.Int("a", 1)}).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		warn(slog.LevelWarn, "refused")
		warn(slog.LevelInfo, "progress")
	}
	warn(slog.LevelError, "something else")
	at = at.Add(time.Minute)
	warn(slog.LevelWarn, "refused")
	if n := strings.Count(text.String(), "msg=refused"); n != lograte.Burst+1 {
		t.Errorf("1001 warnings were written %d times", n)
	}
	if n := strings.Count(text.String(), "msg=progress"); n != 1000 {
		t.Errorf("1000 lines that warn of nothing were written %d times", n)
	}
	if !strings.Contains(text.String(), `msg="something else"`) || !strings.Contains(text.String(), "left_out=980") {
		t.Errorf("another message, or how many were left out, is missing:\n%.2000s", text.String())
	}
}
