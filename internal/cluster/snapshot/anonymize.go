package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// names replaces the words of names, labels and whatever else is text in the objects of a cluster. Equal words become
// equal ones, so that references, selectors and names that are made of others ("web-7d4f-x", of ReplicaSet "web-7d4f")
// stay what they are. So does the order of names, which may decide ties, but for words in kept. A long number is replaced
// by a number, in their order, which operators Gt and Lt of labels compare. What stays as it is: times, amounts, names of
// resources, enumerations, keys of public projects, the words in kept, and numbers of up to three digits, as those of the
// pods of a Job. The name of a node, a UID and an IP address are words.
type names struct {
	whole map[string]bool // words with separators: nodes and UIDs
	words map[string]string
}

// kept are words that forecasts, Kubernetes or Kueue know.
var kept = words(`autoscaler cluster controller karpenter latest kueue job status master worker main device driver true false default
	linux windows amd64 arm64 privileged baseline restricted kube-system kueue-system kueue-manager-config elastic-sim-snapshot
	default-scheduler system-cluster-critical system-node-critical metadata.name pod-template-hash controller-revision-hash job-name
	controller-uid elasticdl_job_name agentpool 0.0.0.0 127.0.0.1`)

// versionWord is a version of an image, or of Pod Security.
var versionWord = regexp.MustCompile(`^v[0-9]+$`)

// word matches a number, or a word, which may contain digits but does not begin with one.
var word = regexp.MustCompile(`[0-9]+|[^\x00-@\[-` + "`" + `{-\x7f][^\x00-/:-@\[-` + "`" + `{-\x7f]*`)

// number matches a number as labels have them.
var number = regexp.MustCompile(`^[1-9][0-9]*$`)

const (
	longestNumber = 3          // digits of numbers that stay as they are
	firstNumber   = 10_000_001 // of those that take the place of longer ones
)

// namesOf replaces the words of objects.
func namesOf(objects []object) *names {
	n := &names{whole: map[string]bool{}, words: map[string]string{}}
	for _, object := range objects {
		if object.GetUID() != "" {
			n.whole[string(object.GetUID())] = true
		}
		if node, isNode := object.(*corev1.Node); isNode {
			n.whole[node.Name] = true
		}
	}
	found := map[string]bool{}
	collect := func(text string) string {
		return n.replace(text, func(word string) string {
			found[word] = true
			return word
		})
	}
	for _, object := range objects {
		visitTexts(reflect.ValueOf(object), "", collect)
	}
	n.number(slices.Sorted(maps.Keys(found)))
	return n
}

// number sets the replacements of words, which are sorted.
func (n *names) number(found []string) {
	width := max(4, len(fmt.Sprint(len(found))))
	var numbers []string
	for i, word := range found {
		n.words[word] = fmt.Sprintf("x%0*d", width, i+1)
		if number.MatchString(word) {
			numbers = append(numbers, word)
		}
	}
	slices.SortFunc(numbers, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for i, word := range numbers {
		n.words[word] = fmt.Sprint(firstNumber + i)
	}
}

// rename replaces the words in objects of which namesOf was made.
func (n *names) rename(objects []object) {
	for _, object := range objects {
		visitTexts(reflect.ValueOf(object), "", n.text)
	}
}

// text is a text with its words replaced.
func (n *names) text(of string) string {
	return n.replace(of, func(word string) string {
		if is, known := n.words[word]; known {
			return is
		}
		return word
	})
}

// replace replaces the words of a text.
func (n *names) replace(text string, of func(word string) string) string {
	if text == "" || kept[text] || isPublic(text) || isTime(text) {
		return text
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return of(text)
	}
	for i := range text {
		if (i == 0 || strings.IndexByte("-./:", text[i-1]) >= 0) && n.whole[text[i:]] {
			return n.replace(text[:i], of) + of(text[i:])
		}
	}
	return word.ReplaceAllStringFunc(text, func(word string) string {
		isNumber := unicode.IsDigit(rune(word[0]))
		if kept[word] || versionWord.MatchString(word) || isNumber && len(word) <= longestNumber {
			return word
		}
		return of(word)
	})
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// terms are the fields whose texts are terms of an API.
var terms = words("Kind APIVersion APIGroup APIGroups APIVersions Resources Type Reason ControllerName")

// visitTexts replaces the texts of an object that its owner has chosen.
func visitTexts(v reflect.Value, field string, change func(string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visitTexts(v.Elem(), field, change)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visitTexts(v.Index(i), field, change)
		}
	case reflect.Struct:
		if opaque[v.Type()] {
			return
		}
		for i := range v.NumField() {
			if of := v.Type().Field(i); of.Name != "Data" || v.Type() != reflect.TypeFor[corev1.ConfigMap]() {
				visitTexts(v.Field(i), of.Name, change)
			}
		}
	case reflect.Map:
		visitMap(v, change)
	case reflect.String:
		switch {
		case terms[field]:
		case field == "ExtendedResourceName": // of a DeviceClass; requests have it as a ResourceName
			v.SetString(resourceName(v.String(), change))
		default:
			v.SetString(textOf(v, change))
		}
	}
}

func visitMap(v reflect.Value, change func(string) string) {
	if v.IsNil() {
		return
	}
	changed := reflect.MakeMap(v.Type())
	for _, key := range v.MapKeys() {
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(v.MapIndex(key))
		visitTexts(value, "", change)
		changed.SetMapIndex(reflect.ValueOf(textOf(key, change)).Convert(key.Type()), value)
	}
	v.Set(changed)
}

// textOf is a text with what its owner has chosen in it replaced. Types of their own are enumerations, which begin with a
// capital, or names, which do not.
func textOf(v reflect.Value, change func(string) string) string {
	text := v.String()
	switch {
	case v.Type() == reflect.TypeFor[corev1.ResourceName]():
		return resourceName(text, change)
	case v.Type().PkgPath() != "" && text != "" && unicode.IsUpper(rune(text[0])):
		return text
	}
	return change(text)
}

// resourceName is the name of a resource, which stays but for those that contain the name of a class.
func resourceName(text string, change func(string) string) string {
	if class, ofClass := strings.CutPrefix(text, resourcev1.ResourceDeviceClassPrefix); ofClass {
		return resourcev1.ResourceDeviceClassPrefix + change(class)
	}
	for _, suffix := range []string{".storageclass.storage.k8s.io/", ".deviceclass.resource.k8s.io/"} {
		if class, rest, ofClass := strings.Cut(text, suffix); ofClass {
			return change(class) + suffix + rest
		}
	}
	return text
}
