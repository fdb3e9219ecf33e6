package nn

import (
	"fmt"
	"slices"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/graph"
)

// Compile checks the model and lays out its program and memory. The network owns threads until Close.
func Compile(m *graph.Model, o Options) (*Network, error) {
	if o.Kernel.Gemm == nil {
		return nil, fmt.Errorf("model %q: no kernel set was chosen", m.Name)
	}
	if o.MaxBatch < 1 {
		return nil, fmt.Errorf("model %q: the largest minibatch is %d records, it must be at least 1", m.Name, o.MaxBatch)
	}
	o.Threads = max(o.Threads, 1)
	n := &Network{model: m, kernel: o.Kernel, options: o}
	c := compiler{n: n}
	if err := c.order(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Name, err)
	}
	for i, node := range c.nodes {
		if err := c.layer(i, node); err != nil {
			return nil, fmt.Errorf("model %q: layer %q (%s): %w", m.Name, node.Name, node.Place, err)
		}
	}
	if err := c.finish(); err != nil {
		return nil, fmt.Errorf("model %q: %w", m.Name, err)
	}
	n.threads = startThreads(o.Threads)
	return n, nil
}

// compiler holds what is known up to the layer at hand.
type compiler struct {
	n     *Network
	nodes []*graph.Node // those that the output depends on, in creation order
	place map[int]int   // of a node of the model in nodes
	input map[int]int   // which of the model's inputs a node is
	arena arena
	ints  []intReservation

	point            // between the layer before and the layer at hand, and then behind it
	points   []point // behind each node
	branches branches
	relu     bool // the node at hand was done by the layer before
	pooled   bool // the same, of a pooling
	dropouts int

	gradients []*tensor // and what else is of the whole minibatch or per thread
	stats     []*Param
	prepare   []func() // of the training program, before the first layer
	pack      []func() // of both programs, before the first layer
	forward   []operation
	phases    []phase
	infer     []operation
	backward  []backwardStep // in forward order
	final     []phase        // of the training program, behind the backward pass
}

// point is what the layers behind need to know of a layer's output.
type point struct {
	value     *tensor
	gradient  *tensor // of value, written by the layer behind and read by the layer that made it
	readOnly  bool    // the value must not be overwritten: it is the caller's, or is needed again
	shape     []int
	ids       *input // the value is the row numbers of this input; there is no tensor
	conv      *conv  // the layer that made it, when that is a convolution, and stands directly before
	trainable bool   // there are variables before this point, so that gradients must come this far
}

type intReservation struct {
	into   *[]int32
	length int
}

// backwardStep is a layer's part of the backward pass. A step with a barrier ends its phase: sums over the whole
// minibatch are needed before the operations behind it.
type backwardStep struct {
	before  []operation
	barrier func()
	behind  []operation
}

// order finds the nodes that the output depends on, in the order of their creation, and how many layers take each.
func (c *compiler) order() error {
	m := c.n.model
	if m.Output < 0 || m.Output >= len(m.Nodes) {
		return fmt.Errorf("output is node %d of %d", m.Output, len(m.Nodes))
	}
	needed := make([]bool, len(m.Nodes))
	needed[m.Output] = true
	for at := m.Output; at >= 0; at-- {
		if !needed[at] {
			continue
		}
		node := &m.Nodes[at]
		if want := inputsOf(node.Op); len(node.Inputs) < want.least || len(node.Inputs) > want.most {
			return fmt.Errorf("layer %q (%s) has %d inputs; %s takes %s", node.Name, node.Place, len(node.Inputs), node.Op, want)
		}
		for _, in := range node.Inputs {
			if in < 0 || in >= at {
				return fmt.Errorf("layer %q (%s) takes node %d, which does not stand before it", node.Name, node.Place, in)
			}
			needed[in] = true
		}
	}
	c.place = map[int]int{}
	inputs := 0
	c.input = map[int]int{}
	for i := range m.Nodes {
		if m.Nodes[i].Op == graph.Input {
			c.input[i] = inputs
			inputs++
		}
		if needed[i] {
			c.place[i] = len(c.nodes)
			c.nodes = append(c.nodes, &m.Nodes[i])
		}
	}
	c.n.inputs = make([]*input, inputs)
	c.points = make([]point, len(c.nodes))
	c.branches = c.findBranches()
	return nil
}

// layer adds node i of nodes.
func (c *compiler) layer(i int, node *graph.Node) error {
	size := elements(node.Shape)
	if size < 1 {
		return fmt.Errorf("shape %v has no elements", node.Shape)
	}
	params, stats, tables := len(c.n.params), len(c.stats), len(c.n.embeddings)
	form := ""
	next := c.onlyNext(i)
	var operands []point
	for _, in := range node.Inputs {
		operands = append(operands, c.take(i, c.place[in]))
	}
	c.point = point{}
	if len(operands) > 0 {
		c.point = operands[0]
	}
	var err error
	if err := checkIntegers(node, operands); err != nil {
		return err
	}
	switch node.Op {
	case graph.Input:
		c.addInput(node)
	case graph.Reshape, graph.Flatten:
		if size != c.value.size {
			err = fmt.Errorf("shape %v cannot be reshaped to %v", c.shape, node.Shape)
		}
		c.conv = nil
	case graph.Conv2D:
		form = "fma chain"
		err = c.addConv(node, next)
	case graph.Dense:
		form, err = c.addDense(node)
	case graph.BatchNorm:
		form = "chains of 8 blocks"
		err = c.addBatchNorm(node, next)
	case graph.MaxPool:
		err = c.addMaxPool(node)
	case graph.Dropout:
		err = c.addDropout(node)
	case graph.ReLU:
		err = c.addReLU(node)
	case graph.Sigmoid, graph.Tanh, graph.Softmax, graph.LeakyReLU:
		err = c.addActivation(node)
	case graph.AveragePool, graph.GlobalAveragePool:
		err = c.addAveragePool(node)
	case graph.Add, graph.Multiply, graph.Concatenate, graph.Subtract:
		err = c.addMerge(node, operands)
	case graph.Embedding:
		form = "rows"
		err = c.addEmbedding(node)
	case graph.ReduceSum:
		err = c.addReduceSum(node)
	case graph.Scale:
		err = c.addScale(node)
	case graph.Broadcast:
		err = c.addBroadcast(node)
	default:
		err = fmt.Errorf("operation %q is not implemented", node.Op)
	}
	if err != nil {
		return err
	}
	c.shape = node.Shape
	c.points[i] = c.point
	c.addGradientsOf(i)
	info := LayerInfo{Name: node.Name, Op: string(node.Op), OutputShape: node.Shape, Form: form}
	for _, p := range c.n.params[params:] {
		info.Params += p.Size
	}
	for _, p := range c.stats[stats:] {
		info.Params += p.Size
		info.NonTrainable += p.Size
	}
	for _, e := range c.n.embeddings[tables:] {
		info.Params += e.table.Size
	}
	c.n.layers = append(c.n.layers, info)
	return nil
}

// finish adds the loss, strings the phases together and allocates.
func (c *compiler) finish() error {
	n := c.n
	if len(c.shape) != 1 {
		return fmt.Errorf("the output %q has shape %v; the loss takes one axis", c.nodes[len(c.nodes)-1].Name, c.shape)
	}
	if !c.trainable {
		return fmt.Errorf("there are no variables to train")
	}
	if c.nodes[len(c.nodes)-1].Op == graph.Input {
		return fmt.Errorf("the input is the output")
	}
	if c.ids != nil {
		return fmt.Errorf("the output %q is an integer input", c.nodes[len(c.nodes)-1].Name)
	}
	n.output = c.value
	if err := c.addLoss(); err != nil {
		return err
	}

	n.trainable = n.state
	for _, p := range c.stats {
		p.Offset = n.state
		n.state += p.Size
		n.params = append(n.params, *p)
	}
	n.stats = n.state - n.trainable
	var err error
	if n.optimizer, err = newOptimizer(n.kernel, n.model.Optimizer, n.model.LearningRates); err != nil {
		return err
	}
	n.slots = make([][]float32, len(n.optimizer.slots))
	n.state += len(n.slots) * n.trainable
	n.dense = n.state
	c.addTables()

	operations := c.forward
	for i := len(c.backward) - 1; i >= 0; i-- {
		step := c.backward[i]
		operations = append(operations, step.before...)
		if step.barrier != nil {
			c.phases = append(c.phases, n.overBlocks(operations, step.barrier))
			operations = nil
		}
		operations = append(operations, step.behind...)
	}
	if len(operations) > 0 {
		c.phases = append(c.phases, n.overBlocks(operations, nil))
	}
	n.inference = append(n.inference, each(c.pack))
	n.training = append(n.training, each(slices.Concat(c.pack, c.prepare)))
	n.training = append(n.training, c.phases...)
	n.training = append(n.training, c.final...)
	n.inference = append(n.inference, n.overBlocks(c.infer, nil))

	for _, g := range c.gradients {
		count := n.options.MaxBatch
		if g.perThread {
			count = n.options.Threads
		}
		c.arena.reserve(&g.data, count*g.size)
	}
	most := int64(mostArenaBytes)
	if limit := n.options.MemoryBytes; limit > 0 {
		most = min(most, limit)
	}
	if bytes := 4 * int64(c.arena.size); bytes > most {
		return fmt.Errorf("a minibatch of %d records takes %.1f GiB of memory, and at most %.1f GiB can be taken here; choose a smaller minibatch size",
			n.options.MaxBatch, float64(bytes)/(1<<30), float64(most)/(1<<30))
	}
	c.arena.allocate()
	for _, r := range c.ints {
		*r.into = make([]int32, r.length)
	}
	return nil
}

// mostArenaBytes is what no machine has free for one worker's activations.
const mostArenaBytes = 1 << 38

// output makes the tensor of a layer's output, and the gradient of it, which is per thread until someone objects.
func (c *compiler) output(size int) {
	c.value = &tensor{size: size}
	c.arena.reserve(&c.value.data, c.n.options.MaxBatch*size)
	c.gradient = c.newGradient(size)
	c.readOnly, c.conv = false, nil
}

// compute adds what computes the output of each record, in training and in inference.
func (c *compiler) compute(run func(t *thread, s span)) {
	step := operation{true, run}
	c.forward, c.infer = append(c.forward, step), append(c.infer, step)
}

// back adds what computes the gradient of each record's input, where that is needed.
func (c *compiler) back(run func(t *thread, s span)) {
	if c.trainable {
		c.backward = append(c.backward, backwardStep{before: []operation{{true, run}}})
	}
}

func (c *compiler) newGradient(size int) *tensor {
	g := &tensor{size: size, perThread: !c.branches.any}
	c.gradients = append(c.gradients, g)
	return g
}

// variable adds a trainable variable.
func (c *compiler) variable(name string, transposed bool, shape ...int) Param {
	p := Param{Name: name, Shape: shape, Offset: c.n.state, Size: elements(shape), Trainable: true, Transposed: transposed}
	c.n.state += p.Size
	c.n.params = append(c.n.params, p)
	c.trainable = true
	return p
}

// statistic adds a moving statistic; its offset is known when all layers are.
func (c *compiler) statistic(name string, size int) *Param {
	p := &Param{Name: name, Shape: []int{size}, Size: size}
	c.stats = append(c.stats, p)
	return p
}

func (n *Network) weights(p Param) []float32  { return n.run.state[p.Offset : p.Offset+p.Size] }
func (n *Network) gradient(p Param) []float32 { return n.run.gradient[p.Offset : p.Offset+p.Size] }

func elements(shape []int) int {
	size := 1
	for _, d := range shape {
		size *= d
	}
	return size
}
