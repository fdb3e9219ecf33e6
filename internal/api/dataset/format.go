// Package dataset defines what a training job's data may name: the formats and codecs of stored records, and the URIs
// of data sets whose records are not stored. The API, the command lines and the trainer share these names.
//
// The package reads no data: internal/trainer/data opens what is named here.
package dataset

import (
	"fmt"
	"strings"
)

// The formats of files with records.
const (
	RecordIO = "recordio"
	TFRecord = "tfrecord"
	CSV      = "csv"
	IDX      = "idx"
)

// DefaultFormat is the format of a job that names none.
const DefaultFormat = RecordIO

// The codecs of a record's bytes.
const (
	BytesCodec     = "bytes"
	TFExampleCodec = "tf_example"
)

// Codecs lists the codecs, the default first.
func Codecs() []string { return []string{BytesCodec, TFExampleCodec} }

// formats lists the formats in the order of the documentation, each with a remark, which is "" where the name is
// enough.
func formats() [][2]string {
	return [][2]string{
		{RecordIO, ""},
		{TFRecord, "plain, or compressed as a whole with GZIP or ZLIB"},
		{CSV, ""},
		{IDX, "MNIST's"},
	}
}

// Formats lists the formats.
func Formats() []string {
	var names []string
	for _, f := range formats() {
		names = append(names, f[0])
	}
	return names
}

// FormatChoice is the formats as part of a sentence: recordio, tfrecord, csv or idx.
func FormatChoice() string { return choice(Formats()) }

// FormatsMarkdown is the choice in Markdown, with the default and the remark of each format.
func FormatsMarkdown() string {
	var texts []string
	for _, f := range formats() {
		name, remark := f[0], f[1]
		text := "`" + name + "`"
		if name == DefaultFormat {
			text += " (default)"
		}
		if remark != "" {
			text += fmt.Sprintf(" (%s)", remark)
		}
		texts = append(texts, text)
	}
	return choice(texts)
}

func choice(texts []string) string {
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}
