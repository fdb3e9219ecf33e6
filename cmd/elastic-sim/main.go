// Command elastic-sim asks the scheduling engine without a cluster, and compares it with recordings of a real Kueue.
package main

import (
	"os"

	"github.com/elastic-training/terraform-provider-elastic/internal/cli/elasticsim"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(elasticsim.Main(version, os.Args[1:])) }
