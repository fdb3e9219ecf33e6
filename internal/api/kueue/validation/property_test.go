package validation_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/kueue/validation/validationtest"
)

func TestAnErrorsFieldIsAPlaceInTheObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := validationtest.Draw(t)
		body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range validationtest.Validate(object, nil) {
			if !isPlace(body, err.Field) {
				t.Errorf("%v: there is no such place in %v", err, body)
			}
		}
	})
}

func TestWhatIsValidMayStayAsItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := validationtest.Draw(t)
		created := validationtest.Validate(object, nil)
		updated := validationtest.Validate(object, object)
		if len(updated) > len(created) || len(created) == 0 && len(updated) > 0 {
			t.Errorf("to create: %v\nto leave it as it is: %v", created.ToAggregate(), updated.ToAggregate())
		}
		if validationtest.Refused(created, validation.CRD) != validationtest.Refused(updated, validation.CRD) {
			t.Errorf("the CRD refuses to create: %v, to leave it as it is: %v", created.ToAggregate(), updated.ToAggregate())
		}
	})
}

// step is one step of a path: a field, an index or a key.
var step = regexp.MustCompile(`^\.?([^.\[\]]+)|^\[([^\]]*)\]`)

// isPlace holds when the path leads to a value, or to a field that an object at its end lacks.
func isPlace(value any, path string) bool {
	for path != "" {
		match := step.FindStringSubmatch(path)
		if match == nil {
			return false
		}
		path = path[len(match[0]):]
		switch container := value.(type) {
		case map[string]any:
			var there bool
			if value, there = container[strings.Trim(match[1]+match[2], `"`)]; !there {
				return path == "" && match[1] != ""
			}
		case []any:
			index, err := strconv.Atoi(match[2])
			if err != nil || index >= len(container) {
				return false
			}
			value = container[index]
		default:
			return false
		}
	}
	return true
}
