package timeline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
)

func TestAnImageIsOneWellFormedFileOfOneColourScheme(t *testing.T) {
	events := goodLog(t, "elastic-scheduling")
	images := map[Scheme]string{}
	for _, scheme := range []Scheme{Light, Dark} {
		var out bytes.Buffer
		if err := RenderImage(&out, events, scheme); err != nil {
			t.Fatal(err)
		}
		images[scheme] = out.String()
		for decoder := xml.NewDecoder(&out); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", scheme, err)
			}
		}
		for _, outside := range []string{"prefers-color-scheme", "href", "url(http", "<script"} {
			if strings.Contains(images[scheme], outside) {
				t.Errorf("the %s image contains %q", scheme, outside)
			}
		}
	}
	for _, name := range eventlog.Replay(events).JobNames() {
		if !strings.Contains(images[Light], ">"+name) {
			t.Errorf("the image does not name job %s", name)
		}
	}
	if images[Light] == images[Dark] {
		t.Error("the images of both colour schemes are equal")
	}
}

func TestAnImageOfALogWithoutPodsIsRefused(t *testing.T) {
	if err := RenderImage(io.Discard, []eventlog.Event{}, Light); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v", err)
	}
}
