package kernel

// BatchNorm fused with the max-pooling behind it.

func portableBatchNormMaxPool(p Pool, dst []float32, arg []int32, at, x, mean, scale, shift []float32, from int) {
	p.check(len(x), min(len(dst), len(arg), len(at)))
	for o := range p.Outputs {
		for c := from; c < p.Channels; c++ {
			normalized := func(v float32) float32 { return FMA(v-mean[c], scale[c], shift[c]) }
			largest := x[o*p.Stride*p.Channels+c]
			best, position := normalized(largest), int32(0)
			for ky := range p.Height {
				for kx := range p.Width {
					v := x[(ky*p.InputRowPixels+o*p.Stride+kx)*p.Channels+c]
					if y := normalized(v); y > best {
						best, position, largest = y, int32(ky*p.Width+kx), v
					}
				}
			}
			i := o*p.Channels + c
			dst[i], arg[i], at[i] = best, position, largest
		}
	}
}

func portablePooledProducts(p Pool, rows int, sum, dot, dy, at []float32, arg []int32, mean []float32, from int) {
	for row := range rows {
		for ky := range p.Height {
			for i := row * p.Outputs; i < (row+1)*p.Outputs; i++ {
				for c := from; c < p.Channels; c++ {
					var v float32
					if int(arg[i*p.Channels+c])/p.Width == ky {
						v = dy[i*p.Channels+c]
					}
					sum[c] += v
					dot[c] = FMA(v, at[i*p.Channels+c]-mean[c], dot[c])
				}
			}
		}
	}
}

func portableBatchNormBackPooled(p Pool, ky int, dst, dy []float32, arg []int32, x, mean, scale, offset, slope []float32, relu bool, from int) {
	for o := range p.Outputs {
		for kx := range p.Width {
			pixel := (o*p.Stride + kx) * p.Channels
			for c := from; c < p.Channels; c++ {
				var v float32
				if int(arg[o*p.Channels+c]) == ky*p.Width+kx {
					v = dy[o*p.Channels+c]
				}
				v = scale[c] * FMA(x[pixel+c]-mean[c], slope[c], v-offset[c])
				if relu && !(x[pixel+c] > 0) {
					v = 0
				}
				dst[pixel+c] = v
			}
		}
	}
}
