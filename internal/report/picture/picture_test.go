package picture

import (
	"errors"
	"html"
	"math"
	"regexp"
	"strings"
	"testing"
)

func TestTicksAreRoundAndFarEnoughApart(t *testing.T) {
	for atLeast, want := range map[float64]float64{0.7: 1, 1: 1, 1.1: 2, 3: 5, 6: 10, 12: 20, 60: 100} {
		if got := Tick(atLeast); got != want {
			t.Errorf("Tick(%g) = %g, want %g", atLeast, got, want)
		}
	}
}

func FuzzWhatComesFromElsewhereStaysTextInTextAndInAttributes(f *testing.F) {
	f.Add(`<script>alert("1")</script>&'`)
	f.Add(`" onload="x`)
	f.Fuzz(func(t *testing.T, foreign string) {
		type name string
		for _, argument := range []any{foreign, name(foreign), errors.New(foreign), []string{foreign}} {
			var m Markup
			m.Put(`<i title="%s">%s</i>`, argument, argument)
			parts := regexp.MustCompile(`(?s)^<i title="([^"<>]*)">([^"<>]*)</i>\n$`).FindStringSubmatch(string(m.Markup()))
			if parts == nil {
				t.Fatalf("%q is written as %s", argument, m.Markup())
			}
			if got := html.UnescapeString(parts[2]); !strings.Contains(got, foreign) {
				t.Fatalf("%q is read as %q", foreign, got)
			}
		}
	})
}

func TestCoordinatesThatAreNoNumbersDoNotSpoilAPicture(t *testing.T) {
	var m Markup
	m.Put(`<line x1="%g" x2="%.1f"/>%s`, math.NaN(), math.Inf(1), Raw("<b/>"))
	if got := m.Markup(); got != `<line x1="0" x2="0.0"/><b/>`+"\n" {
		t.Error(got)
	}
}
