package trainingjob

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
)

// data checks what a job reads, and what goes with its command.
func (p *problems) data(j Job) {
	if j.Data.Training == "" {
		p.add("data.training", "is empty; name a file, a directory or synthetic://digits?records=10000&seed=1")
	}
	p.command(j)
	p.source("data.training", j.Data.Training)
	p.source("data.validation", j.Data.Validation)
	if !slices.Contains(dataset.Formats(), j.Data.Format) && (j.Data.Format != "" || !unstored(j.Data)) {
		p.add("data.format", "is %q; this version reads %s", j.Data.Format, quoted(dataset.Formats()))
	}
	if !slices.Contains(dataset.Codecs(), j.Data.Codec) && (j.Data.Codec != "" || !unstored(j.Data)) {
		p.add("data.codec", "is %q; this version knows %s", j.Data.Codec, quoted(dataset.Codecs()))
	}
	p.csv(j.Data)
}

// command checks the job's command, and what goes with one alone.
func (p *problems) command(j Job) {
	if len(j.Command) == 0 {
		for _, d := range [][2]string{{"data.training", j.Data.Training}, {"data.validation", j.Data.Validation}} {
			if field, source := d[0], d[1]; strings.HasPrefix(source, dataset.IndicesPrefix) {
				p.add(field, "is %q: indices are assigned to a script that has the records; set workers.command, or name records that a model file can read", source)
			}
		}
		return
	}
	if a := j.Training.Aggregation; a != "" && a != AggregationMaster {
		p.add("training.aggregation", "is %q, and the job's command computes it: what its framework adds, and where, is its own matter", a)
	}
	if j.Command[0] == "" {
		p.add("workers.command", "names no program; give what runs the script, as in [\"python3\"]")
	}
	if j.Model.Name != "" {
		p.add("workers.command", "is %q, and the model is the built-in %q, which elastic-trainer computes itself; give the script as model.content", strings.Join(j.Command, " "), j.Model.Name)
	}
}

func (p *problems) source(field, source string) {
	scheme, rest, ok := strings.Cut(source, "://")
	if !ok {
		if source != "" && !path.IsAbs(source) {
			p.add(field, "is %q; it must be an absolute path in the image or in a volume", source)
		}
		return
	}
	if scheme+"://" == dataset.IndicesPrefix {
		if _, err := dataset.ParseIndices(source); err != nil {
			p.add(field, "is %q: %s", source, err)
		}
		return
	}
	if scheme == "s3" || scheme == "gs" {
		if bucket, _, _ := strings.Cut(rest, "/"); bucket == "" || strings.ContainsAny(bucket, "@:?#") {
			p.add(field, "is %q; write %s://BUCKET/PREFIX: credentials come from the pods' environment, not from here", source, scheme)
		}
		return
	}
	if scheme+"://" != dataset.SyntheticPrefix {
		p.add(field, "is %q; this version reads files, directories, s3://, gs://, synthetic:// and, with a command, indices://", source)
		return
	}
	if _, err := dataset.ParseSynthetic(source); err != nil {
		p.add(field, "is %q: %s", source, err)
	}
}

// csv looks at what only CSV has.
func (p *problems) csv(d Data) {
	if d.CSV == nil {
		return
	}
	if d.Format != "csv" {
		p.add("data.csv", "is set, and data.format is %q; set format = \"csv\" or leave csv out", d.Format)
	}
	for _, feature := range slices.Sorted(maps.Keys(d.CSV.Columns)) {
		columns := d.CSV.Columns[feature]
		if feature == "" || len(columns) == 0 || slices.Contains(columns, "") {
			p.add("data.csv.columns", "gives feature %q the columns %q; name one column for each of its elements", feature, columns)
		}
	}
	for _, column := range slices.Sorted(maps.Keys(d.CSV.Words)) {
		words := d.CSV.Words[column]
		if column == "" || len(words) == 0 {
			p.add("data.csv.vocabularies", "gives column %q the words %q; list its words in the order of their numbers", column, words)
		}
	}
}

// unstored reports that no records are in files, whose format and codec would have to be known.
func unstored(d Data) bool {
	return dataset.IsGenerated(d.Training) && (d.Validation == "" || dataset.IsGenerated(d.Validation))
}
