package provider

import (
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
)

const durationWords = "a duration of more than zero: a number and a unit, such as 90s or 1h30m"

// positiveDuration refuses what is no duration, and durations in which nothing can happen.
var positiveDuration = textRule{durationWords, func(at path.Path, text string) (title, detail string) {
	switch duration, err := time.ParseDuration(text); {
	case err != nil:
		return "Invalid duration", fmt.Sprintf("%s is %q; use a number and a unit, such as \"90s\" or \"1h30m\".", at, text)
	case duration <= 0:
		return "Invalid duration", fmt.Sprintf("%s is %q; it must be more than zero. Omit it to use the default.", at, text)
	}
	return "", ""
}}
