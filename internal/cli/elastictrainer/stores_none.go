//go:build !objectstores

package elastictrainer

import "github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/objectstore"

// stores is none: the library for s3:// and gs:// would make the image larger than 25 MB.
func stores() objectstore.Opener { return nil }
