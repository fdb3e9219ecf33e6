package elastictrainer

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/elastic-training/terraform-provider-elastic/internal/api/dataset"
	"github.com/elastic-training/terraform-provider-elastic/internal/api/trainingjob"
	"github.com/elastic-training/terraform-provider-elastic/internal/cli"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/datacmd"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/recordio"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/table"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/data/tfrecord"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/modelfile"
)

func newData() *cobra.Command {
	c := &cobra.Command{
		Use:   "data",
		Short: "Create, convert, inspect and verify data sets",
	}
	c.AddCommand(newSynth(), newConvert(), newInspect(), newVerify())
	return c
}

// source are the flags of a data set that is read.
type source struct {
	spec  data.Spec
	csv   csvFlags
	model string
}

func (s *source) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.spec.Format, "data-format", "", dataset.FormatChoice()+" (default: from the file names)")
	f.StringVar(&s.spec.Codec, "codec-type", "", "encoding of the source records: bytes or tf_example")
	s.csv.register(f)
	f.StringVar(&s.model, "model", "", "model file or built-in model that defines the features of the records")
	cli.CompleteFrom(c, "data-format", dataset.Formats()...)
	cli.CompleteFrom(c, "codec-type", dataset.Codecs()...)
	cli.CompleteFlag(c, "model", models)
}

// of is the data set at path.
func (s *source) of(path string) (data.Spec, error) {
	s.spec.Path, s.spec.Stores = path, stores()
	csv, err := s.csv.finish()
	if err != nil {
		return data.Spec{}, err
	}
	if csv != nil {
		s.spec.Table = table.Options{Columns: csv.Columns, Words: csv.Words}
	}
	if s.model == "" {
		return s.spec, nil
	}
	name, text, err := readModel(s.model)
	if err != nil {
		return data.Spec{}, err
	}
	m, _, err := modelfile.Load(name, text, modelfile.Options{})
	if err != nil {
		return data.Spec{}, err
	}
	s.spec.Features = m.Feed.Features
	return s.spec, nil
}

// csvFlags are what CSV files and a model's schema do not say.
type csvFlags struct{ columns, words []string }

func (c *csvFlags) register(f *pflag.FlagSet) {
	f.StringArrayVar(&c.columns, "csv-columns", nil, "CSV columns of a feature, if their names differ from its name; for example label=species or features=length,width; may be repeated")
	f.StringArrayVar(&c.words, "csv-vocabularies", nil, "categories of a text column in index order, for example species=setosa,versicolor,virginica; may be repeated")
}

// finish is nil where nothing is printed.
func (c *csvFlags) finish() (*trainingjob.CSV, error) {
	if len(c.columns)+len(c.words) == 0 {
		return nil, nil //nolint:nilnil // nothing is a valid answer
	}
	columns, err := namedLists("--csv-columns", c.columns)
	if err != nil {
		return nil, err
	}
	words, err := namedLists("--csv-vocabularies", c.words)
	if err != nil {
		return nil, err
	}
	return &trainingjob.CSV{Columns: columns, Words: words}, nil
}

// namedLists reads NAME=A,B,C; an element with a comma is quoted as in CSV.
func namedLists(flag string, values []string) (map[string][]string, error) {
	if len(values) == 0 {
		return nil, nil //nolint:nilnil // nothing is a valid answer
	}
	lists := map[string][]string{}
	for _, v := range values {
		name, list, ok := strings.Cut(v, "=")
		elements, err := csv.NewReader(strings.NewReader(list)).Read()
		if !ok || name == "" || err != nil {
			return nil, cli.UsageError("%s=%s: use the form NAME=FIRST,SECOND", flag, v)
		}
		lists[name] = elements
	}
	return lists, nil
}

// output are the flags of a data set that is written.
type output struct {
	datacmd.Output
	compressor string
}

func (o *output) register(c *cobra.Command, codec string) {
	f := c.Flags()
	f.StringVarP(&o.Dir, "output", "o", "", "`directory` for the files (required)")
	f.StringVar(&o.Format, "to-format", dataset.RecordIO, "recordio, tfrecord or idx")
	f.StringVar(&o.Codec, "to-codec", "", codec)
	f.StringVar(&o.compressor, "compressor", "", "compression of RecordIO chunks: snappy (default), gzip or none; of TFRecord files: none (default), gzip or zlib")
	f.Int64Var(&o.RecordsPerFile, "records-per-file", datacmd.DefaultRecordsPerFile, "records per file")
	f.IntVar(&o.RecordsPerChunk, "records-per-chunk", 0, "records per RecordIO chunk; 0: limited by chunk size only. For large data sets, use the --record-per-task value of the training")
	cli.InRange(c, "records-per-file", 1, maxRecords)
	cli.InRange(c, "records-per-chunk", 0, trainingjob.MaxRecordsPerTask)
	f.BoolVar(&o.Force, "force", false, "overwrite existing files")
	cli.Require(c, "output")
	cli.CompleteDirectories(c, "output")
	cli.CompleteFrom(c, "to-format", dataset.RecordIO, dataset.TFRecord, dataset.IDX)
	cli.CompleteFrom(c, "to-codec", dataset.Codecs()...)
	cli.CompleteFlag(c, "compressor", o.compressors)
}

var (
	compressors  = map[string]recordio.Compressor{"": recordio.Snappy, "none": recordio.None, "snappy": recordio.Snappy, "gzip": recordio.Gzip}
	compressions = map[string]tfrecord.Compression{"": tfrecord.None, "none": tfrecord.None, "gzip": tfrecord.Gzip, "zlib": tfrecord.Zlib}
)

func (o *output) finish() error {
	var ok bool
	if o.Format == dataset.TFRecord {
		if o.Compression, ok = compressions[o.compressor]; !ok {
			return cli.UsageError("--compressor=%s: TFRecord files are compressed with gzip or zlib, or none", o.compressor)
		}
	} else if o.Compressor, ok = compressors[o.compressor]; !ok {
		return cli.UsageError("--compressor=%s: use none, snappy or gzip", o.compressor)
	}
	o.Progress = bar("writing")
	return nil
}

// bar shows long work on a terminal, and nothing elsewhere.
func bar(what string) func(done, total int64) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return nil
	}
	var b *progressbar.ProgressBar
	return func(done, total int64) {
		if b == nil {
			b = progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(what),
				progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("records"),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = b.Set64(done) // a bar that cannot be drawn is no reason to stop
	}
}

func newSynth() *cobra.Command {
	var o output
	var records int64
	var seed uint64
	c := &cobra.Command{
		Use:   "synth [digits|shapes|frappe|census] --output DIR",
		Short: "Create a synthetic data set from a seed",
		Long: `Create a synthetic data set. It depends only on the seed:

  digits  images of digits, 28×28, for the model mnist (the default)
  shapes  coloured images, 32×32, for cifar10 and resnet
  frappe  app usage with context; each record has ten of 5,382 categories; for deepfm
  census  income prediction from categorical and numeric features, for wide_deep and
          census_dnn`,
		Example: `  elastic-trainer data synth --output digits/train --records 10000 --seed 1
  elastic-trainer data synth census --output census --to-format tfrecord`,
		Args: cli.NeedsArguments("[SET]"),
		ValidArgsFunction: cli.FirstArgument(func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return cli.Beginning(typed, dataset.SyntheticSets())
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.finish(); err != nil {
				return err
			}
			set := dataset.Digits
			if len(args) > 0 {
				set = args[0]
			}
			return printPaths(cmd)(datacmd.Synth(cmd.Context(), set, records, seed, o.Output))
		},
	}
	o.register(c, "encoding of the records: bytes or tf_example (default: bytes for digits in RecordIO, tf_example otherwise)")
	c.Flags().Int64Var(&records, "records", 10000, "number of records")
	cli.InRange(c, "records", 1, maxRecords)
	c.Flags().Uint64Var(&seed, "seed", 1, "random seed of the records")
	cli.Seed(c, "seed")
	return c
}

func newConvert() *cobra.Command {
	var s source
	var o output
	var part string
	c := &cobra.Command{
		Use:   "convert SOURCE --output DIR",
		Short: "Convert a data set to another format or codec, or extract a part",
		Long: `Convert a data set. Images and labels (MNIST's IDX files, synthetic digits) are written
in the record format of ElasticDL's generator: image float32[1,28,28] with pixels 0 to
255, label int64[1]. Rows of CSV are written as tf_examples with a feature for every
column. To split off validation data, convert twice with different values of --part.`,
		Example: `  elastic-trainer data convert mnist --output mnist/train --part 0:8000
  elastic-trainer data convert mnist --output mnist/test --part 8000:
  elastic-trainer data convert iris.csv --output iris --to-format tfrecord \
      --csv-columns label=species --csv-vocabularies species=setosa,versicolor,virginica`,
		Args:              cli.NeedsArguments("SOURCE"),
		ValidArgsFunction: cli.FirstArgument(dataPaths),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.finish(); err != nil {
				return err
			}
			lo, hi, err := datacmd.ParseRange(part)
			if err != nil {
				return cli.UsageError("--part: %w", err)
			}
			from, err := s.of(args[0])
			if err != nil {
				return err
			}
			return printPaths(cmd)(datacmd.Convert(cmd.Context(), from, lo, hi, o.Output))
		},
	}
	s.register(c)
	o.register(c, "encoding of the new records: bytes or tf_example (default: that of the source; for CSV tf_example; for images bytes, or tf_example with --to-format tfrecord)")
	c.Flags().StringVar(&part, "part", "", "write only records LO to HI-1 of LO:HI, numbered from 0 across all files; LO or HI may be omitted (default all)")
	return c
}

func newInspect() *cobra.Command {
	var s source
	var o datacmd.InspectOptions
	var sheet string
	var images int64
	c := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Show formats, features and chunk sizes of a data set",
		Long: `Show the properties of a data set that matter for training: formats, codecs,
compression, records and their features, and chunks with more records than are assigned
to a worker at a time. PATH is a directory, a file, or synthetic://digits.`,
		Example: `  elastic-trainer data inspect digits/train
  elastic-trainer data inspect synthetic://digits --sheet digits.png`,
		Args:              cli.NeedsArguments("PATH"),
		ValidArgsFunction: cli.FirstArgument(dataPaths),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := s.of(args[0])
			if err != nil {
				return err
			}
			if err := datacmd.Inspect(cmd.Context(), from, o, cmd.OutOrStdout()); err != nil {
				return err
			}
			if sheet == "" {
				return nil
			}
			return writeSheet(cmd, from, images, sheet)
		},
	}
	s.register(c)
	c.Flags().IntVar(&o.RecordsPerTask, "record-per-task", 100, "records that are assigned to a worker at a time; larger chunks are reported")
	cli.InRange(c, "record-per-task", 1, trainingjob.MaxRecordsPerTask)
	c.Flags().StringVar(&sheet, "sheet", "", "write the first images to this PNG `file` (IDX and synthetic data)")
	cli.CompleteFiles(c, "sheet", "png")
	c.Flags().Int64Var(&images, "sheet-images", 200, "number of images in the --sheet file")
	cli.InRange(c, "sheet-images", 1, maxSheetImages)
	return c
}

func writeSheet(cmd *cobra.Command, spec data.Spec, images int64, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := datacmd.Sheet(cmd.Context(), spec, images, f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func newVerify() *cobra.Command {
	var s source
	c := &cobra.Command{
		Use:   "verify PATH",
		Short: "Read every record and check every checksum",
		Long: `Read every record of a data set and verify every checksum; with --model also verify
that every record has the features that the model needs. PATH is a directory or a file.`,
		Example: `  elastic-trainer data verify digits/train
  elastic-trainer data verify digits/train --model mnist`,
		Args:              cli.NeedsArguments("PATH"),
		ValidArgsFunction: cli.FirstArgument(dataPaths),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := s.of(args[0])
			if err != nil {
				return err
			}
			return datacmd.Verify(cmd.Context(), from, bar("reading"), cmd.OutOrStdout())
		},
	}
	s.register(c)
	return c
}

// printPaths prints the files that were written.
func printPaths(cmd *cobra.Command) func([]string, error) error {
	return func(paths []string, err error) error {
		for _, p := range paths {
			fmt.Fprintln(cmd.OutOrStdout(), p)
		}
		return err
	}
}
