package recording

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Sizes in pixels of the picture.
const (
	cellWidth, lineHeight = 8.4, 19.0
	padding, radius       = 16, 8
)

// after is how long the last frame stays until the picture begins anew.
const after = 4 * time.Second

// A theme is the colours of a ground, of text, and of the SGR parameters that a session may print.
type theme struct {
	page, border, text string
	colours            map[int]string
}

// The themes are GitHub's, whose pages the README is shown on.
var themes = map[string]theme{
	"light": {"#f6f8fa", "#d1d9e0", "#1f2328", map[int]string{
		31: "#a40e26", 32: "#116329", 33: "#7d4e00", 34: "#0550ae", 35: "#6639ba", 36: "#0b5f6b", 90: "#59636e",
	}},
	"dark": {"#161b22", "#3d444d", "#e6edf3", map[int]string{
		31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd", 90: "#9198a1",
	}},
}

var colourNumbers = slices.Sorted(maps.Keys(themes["light"].colours))

// draw draws a recording. All its lines are on a strip, of which the picture shows as many as the terminal has. A cover
// hides what is not printed yet: it begins at the cursor. So the strip and the cover are all that moves, in steps.
// A reader who prefers reduced motion sees the last frame.
func draw(c Cast, colours theme) ([]byte, error) {
	s, frames, err := replay(c)
	if err != nil {
		return nil, err
	}
	d := drawing{frames: frames, height: c.header.Height, total: frames[len(frames)-1].at + after}
	width, height := cellWidth*float64(c.header.Width), lineHeight*float64(c.header.Height)
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-label="%s">`+"\n",
		number(width+2*padding), number(height+2*padding), html.EscapeString(c.header.Title))
	fmt.Fprintf(&svg, "<style>\n%s\n%s%s</style>\n", colours.css(), sheet, d.keyframes())
	fmt.Fprintf(&svg, `<rect class="page" x=".5" y=".5" width="%s" height="%s" rx="%d"/>`+"\n", number(width+2*padding-1), number(height+2*padding-1), radius)
	fmt.Fprintf(&svg, `<svg x="%d" y="%d" width="%s" height="%s">`+"\n", padding, padding, number(width), number(height))
	last := frames[len(frames)-1]
	fmt.Fprintf(&svg, `<g class="strip" transform="translate(0 %s)">`+"\n", number(-lineHeight*float64(d.scrolled(last))))
	for row, line := range s.lines {
		if d.shown(row) {
			svg.WriteString(drawLine(row, line))
		}
	}
	fmt.Fprintf(&svg, `<g class="cover" transform="translate(%s %s)"><path d="M0 0H%[3]sV%[4]sH-%[3]sV%[5]sH0z"/><rect class="cursor" width="%[6]s" height="%[5]s"/></g>`+"\n",
		number(cellWidth*float64(last.column)), number(lineHeight*float64(last.row)), number(width), number(height), number(lineHeight), number(cellWidth))
	svg.WriteString("</g>\n</svg>\n</svg>\n")
	return svg.Bytes(), nil
}

// sheet is the style that both themes share.
const sheet = `.page { fill: var(--page); stroke: var(--border); }
.cover path { fill: var(--page); }
.cursor { fill: var(--text); opacity: .6; }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace; fill: var(--text); white-space: pre; }
.b { font-weight: 600; }
.u { text-decoration: underline; }
@media (prefers-reduced-motion: reduce) { .strip, .cover { animation: none !important; } }
`

// css is the line by which the themes differ, and the classes of their colours.
func (t theme) css() string {
	css := fmt.Sprintf("svg { --page: %s; --border: %s; --text: %s;", t.page, t.border, t.text)
	var classes strings.Builder
	for _, n := range colourNumbers {
		css += fmt.Sprintf(" --c%d: %s;", n, t.colours[n])
		fmt.Fprintf(&classes, "\n.c%d { fill: var(--c%[1]d); }", n)
	}
	return css + " }" + classes.String()
}

// A drawing is what moves.
type drawing struct {
	frames []frame
	height int // in lines
	total  time.Duration
}

// scrolled is how many lines are above the terminal in a frame.
func (d drawing) scrolled(f frame) int { return max(0, f.row+1-d.height) }

// shown says whether a row is in the terminal in any frame: of a long output in one frame only the end is.
func (d drawing) shown(row int) bool {
	return slices.ContainsFunc(d.frames, func(f frame) bool { return d.scrolled(f) <= row && row <= f.row })
}

// keyframes are the two animations.
func (d drawing) keyframes() string {
	strip, cover := "", ""
	position := -1
	for _, f := range d.frames {
		at := fmt.Sprintf("%s%%", number(100*f.at.Seconds()/d.total.Seconds()))
		if scrolled := d.scrolled(f); scrolled != position {
			position = scrolled
			strip += fmt.Sprintf("%s{transform:translateY(%spx)}", at, number(-lineHeight*float64(scrolled)))
		}
		cover += fmt.Sprintf("%s{transform:translate(%spx,%spx)}", at, number(cellWidth*float64(f.column)), number(lineHeight*float64(f.row)))
	}
	names := ""
	for _, animation := range [][2]string{{"strip", strip}, {"cover", cover}} {
		names += fmt.Sprintf("@keyframes %s {%s}\n.%[1]s { animation: %[1]s %[3]ss step-end infinite; }\n", animation[0], animation[1], number(d.total.Seconds()))
	}
	return names
}

// drawLine draws a line as pieces of one style. Whichever font there is, the line is as wide as its cells.
func drawLine(row int, line []cell) string {
	for len(line) > 0 && line[len(line)-1].char == ' ' {
		line = line[:len(line)-1]
	}
	if len(line) == 0 {
		return ""
	}
	text := fmt.Sprintf(`<text y="%s" textLength="%s">`, number(lineHeight*float64(row)+14), number(cellWidth*float64(len(line))))
	for len(line) > 0 {
		end := slices.IndexFunc(line, func(c cell) bool { return c.style != line[0].style })
		if end < 0 {
			end = len(line)
		}
		var piece strings.Builder
		for _, c := range line[:end] {
			piece.WriteRune(c.char)
		}
		text += line[0].style.wrap(html.EscapeString(piece.String()))
		line = line[end:]
	}
	return text + "</text>\n"
}

// wrap gives a piece its style.
func (s style) wrap(text string) string {
	var classes []string
	if s.colour != 0 {
		classes = append(classes, fmt.Sprintf("c%d", s.colour))
	}
	if s.bold {
		classes = append(classes, "b")
	}
	if s.underline {
		classes = append(classes, "u")
	}
	if len(classes) == 0 {
		return text
	}
	return fmt.Sprintf(`<tspan class="%s">%s</tspan>`, strings.Join(classes, " "), text)
}

// number is a number with at most three decimals.
func number(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", math.Round(n*1000)/1000), "0"), ".")
}
