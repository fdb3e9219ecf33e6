//go:build objectstores

package elastictrainer

import (
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore/cloud"
)

// stores reads s3:// and gs://.
func stores() objectstore.Opener { return cloud.Open }
