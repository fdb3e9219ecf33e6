package nn

// LayerInfo is a line of `elastic-trainer model`.
type LayerInfo struct {
	Name         string
	Op           string
	OutputShape  []int  // without the batch dimension
	Params       int    // all variables' elements
	NonTrainable int    // of these, moving statistics
	Form         string // how sums along K are made: "fma chain" (rule 1), "16 lanes" (rule 3), "chains of 8 blocks" (rule 2), or ""
}

// Layers lists the model's layers from input to output.
func (n *Network) Layers() []LayerInfo { return n.layers }
