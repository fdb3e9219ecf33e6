// Package strategicmerge gives package trainingjob Kubernetes' strategic-merge patches, by being imported:
//
//	import _ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge"
//
// Everything that makes pod templates of definitions imports it. The trainer, which reads the same package's job, does
// not: the library registers all of OpenAPI's messages, which the linker cannot leave out.
package strategicmerge

import (
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func init() { trainingjob.StrategicMerge = strategicpatch.StrategicMergePatch }
