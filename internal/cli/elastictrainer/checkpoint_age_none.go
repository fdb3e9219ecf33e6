//go:build podsonly && !checkpointage

package elastictrainer

import "github.com/spf13/cobra"

// checkpointAge is none: a cluster needs it once, and it would make the image of every worker larger than 25 MB.
func checkpointAge() []*cobra.Command { return nil }
