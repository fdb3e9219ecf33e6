// Package format names the ways in which records may be stored in files: what a job, a flag and the provider's attribute may
// say, how a file's name tells its format, and what people are told of the choice. All of these follow from one table.
//
// It reads no file: what opens a file of a format is in package data.
package format

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/idx"
)

// The formats, as jobs and flags name them.
const (
	RecordIO = "recordio"
	TFRecord = "tfrecord"
	CSV      = "csv"
	IDX      = "idx"
)

// Default is meant where a job says nothing.
const Default = RecordIO

// row is what there is to know of a format before a file is opened.
type row struct {
	name    string
	remark  string                 // for the documentation; "" where the name says it
	isNamed func(file string) bool // whether files of the format are usually called so; nil: they have no names of their own
}

// table holds all formats, in the order in which people are told of them. No two of them claim the same file.
func table() []row {
	return []row{
		{RecordIO, "", nil},
		{TFRecord, "plain, or compressed as a whole with GZIP or ZLIB", func(file string) bool {
			file = strings.TrimSuffix(strings.TrimSuffix(file, ".gz"), ".zlib")
			return ends(file, ".tfrecord", ".tfrecords")
		}},
		{CSV, "", func(file string) bool { return ends(file, ".csv") }},
		{IDX, "MNIST's", idx.IsImagesName},
	}
}

func ends(file string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(file, suffix) })
}

// Names lists the formats.
func Names() []string {
	var names []string
	for _, r := range table() {
		names = append(names, r.name)
	}
	return names
}

// Guess is the format that the names of a data set's files speak of; the paths are slash-separated. It is Default where they
// say nothing.
func Guess(files []string) string {
	for _, file := range files {
		name := strings.ToLower(path.Base(file))
		for _, r := range table() {
			if r.isNamed != nil && r.isNamed(name) {
				return r.name
			}
		}
	}
	return Default
}

// Choice is the names for a sentence: recordio, tfrecord, csv or idx.
func Choice() string { return choice(Names()) }

// Described is the choice in Markdown, with what is to be known of each format.
func Described() string {
	var texts []string
	for _, r := range table() {
		text := "`" + r.name + "`"
		if r.name == Default {
			text += " (default)"
		}
		if r.remark != "" {
			text += fmt.Sprintf(" (%s)", r.remark)
		}
		texts = append(texts, text)
	}
	return choice(texts)
}

func choice(texts []string) string {
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}
