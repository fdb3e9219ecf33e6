package scenario

// Expect is what must come of the scenario, wherever it is told: simulated, on the embedded cluster, on kind.
type Expect struct{}

func (c *checker) checkExpect() {}
