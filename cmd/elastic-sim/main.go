// Command elastic-sim runs the scheduling engine: it simulates scenarios, makes forecasts for a cluster, and compares
// the engine with recordings of Kueue.
package main

import (
	"os"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/elasticsim"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(elasticsim.Main(version, os.Args[1:])) }
