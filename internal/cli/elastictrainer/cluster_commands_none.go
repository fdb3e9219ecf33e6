//go:build podsonly

package elastictrainer

import "github.com/spf13/cobra"

// clusterCommands are none: the image's program runs in pods, and the client library of Kubernetes that these commands
// need would make the image larger than 25 MB.
func clusterCommands(string) []*cobra.Command { return nil }
