//go:build !offline

package strategicmerge

import (
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
)

func init() { trainingjob.StrategicMerge = strategicpatch.StrategicMergePatch }
