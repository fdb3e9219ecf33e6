// Package strategicmerge gives package trainingjob Kubernetes' strategic-merge patches, by being imported:
//
//	import _ "github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob/strategicmerge"
//
// Everything that makes pod templates of definitions imports it. The trainer, which reads the same package's job, does
// not: the library registers all of OpenAPI's messages, which the linker cannot leave out.
//
// With the tag offline it does nothing: elastic-sim as make try builds it refuses overrides, and compiles a seventh less.
package strategicmerge
