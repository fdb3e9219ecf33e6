package timeline

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/report/eventlog"
	"github.com/elastic-training/terraform-provider-elastic/internal/report/picture"
)

// A Scheme is the colour scheme of an image, which cannot follow the reader's as a page does.
type Scheme string

// The colour schemes.
const (
	Light Scheme = "light"
	Dark  Scheme = "dark"
)

// darkColours is the part of the style sheet that a dark page uses.
var darkColours = regexp.MustCompile(`(?s)@media \(prefers-color-scheme: dark\) \{\s*(:root \{.*?\})\s*\}`)

// RenderImage writes the picture of a log as one SVG file, for documents. It returns ErrNothing for a log without pods.
func RenderImage(w io.Writer, events []eventlog.Event, scheme Scheme) error {
	svg, err := image(eventlog.Replay(events))
	if err != nil {
		return err
	}
	style := darkColours.ReplaceAllString(picture.Style, "")
	if dark := darkColours.FindStringSubmatch(picture.Style); scheme == Dark {
		style += dark[1]
	}
	style += "svg.wide { display: block; background: var(--page); }"
	style += ".gone { fill: color-mix(in srgb, var(--bad) 16%, var(--lane)); }" // as on the page
	start, body, _ := strings.Cut(string(svg), ">")
	start = strings.Replace(start, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	if _, err := fmt.Fprintf(w, "%s><style>%s</style>%s", start, style, body); err != nil {
		return fmt.Errorf("write the image of the timeline: %w", err)
	}
	return nil
}

// image draws a history for wide screens.
func image(h *eventlog.History) (picture.Raw, error) {
	from, to, ok := extent(h, false)
	if !ok {
		return "", ErrNothing
	}
	colours := map[string]int{}
	for i, summary := range h.Summarize() {
		colours[summary.Job] = i % jobColours
	}
	d := &drawing{history: h, colours: colours, id: "wide", width: wide, image: true}
	d.scale = scale{from: from, to: to, x0: 2, x1: wide - 2}
	svg, _ := d.draw()
	return svg, nil
}
