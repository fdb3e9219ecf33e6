package nn

import (
	"fmt"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// windows is the geometry of a pooling layer: its outputs, and the border that "same" padding puts around the image.
type windows struct {
	outH, outW       int
	top, left        int
	paddedH, paddedW int // of the image with its border
}

func newWindows(a graph.AveragePoolAttrs, height, width int) (windows, error) {
	w := windows{paddedH: height, paddedW: width}
	switch {
	case a.Padding != "" && a.Padding != "same":
		return w, fmt.Errorf("padding %q does not exist; there are \"\" and \"same\"", a.Padding)
	case a.PoolH < 1 || a.PoolW < 1 || a.StrideH < 1 || a.StrideW < 1:
		return w, fmt.Errorf("a window of %d×%d with strides %d×%d is none", a.PoolH, a.PoolW, a.StrideH, a.StrideW)
	}
	if a.Padding == "same" {
		var bottom, right int
		w.top, bottom = sameAround(height, a.PoolH, a.StrideH)
		w.left, right = sameAround(width, a.PoolW, a.StrideW)
		w.paddedH, w.paddedW = w.top+height+bottom, w.left+width+right
	}
	if a.PoolH > w.paddedH || a.PoolW > w.paddedW {
		return w, fmt.Errorf("a window of %d×%d does not fit an image of %d×%d", a.PoolH, a.PoolW, height, width)
	}
	w.outH, w.outW = (w.paddedH-a.PoolH)/a.StrideH+1, (w.paddedW-a.PoolW)/a.StrideW+1
	return w, nil
}
