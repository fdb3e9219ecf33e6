package modelfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// otherFunctions are what files take from Python's library and from ElasticDL besides layers.
func otherFunctions() map[string]starlark.Value {
	values := map[string]starlark.Value{
		"collections.namedtuple": function(signature{name: "namedtuple", positional: []string{"typename", "field_names"}}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			return namedTuple(a)
		}),
		"itertools.accumulate": function(signature{name: "itertools.accumulate", positional: []string{"iterable"}}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
			return accumulate(sessionOf(t), a)
		}),
		"tensorflow.keras.backend.image_data_format": function(signature{name: "tf.keras.backend.image_data_format"}, func(*starlark.Thread, *arguments) (starlark.Value, error) {
			return starlark.String("channels_last"), nil
		}),
		"tensorflow.keras.Sequential":        sequentialFunction("tf.keras.Sequential"),
		"tensorflow.keras.models.Sequential": sequentialFunction("tf.keras.models.Sequential"),
	}
	for _, name := range []string{"debug", "info", "warning", "error"} { // what is logged changes no model
		values["elasticdl.python.common.log_utils.default_logger."+name] = starlark.NewBuiltin(name,
			func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				return starlark.None, nil
			})
	}
	for _, path := range []string{"elasticdl.python.elasticdl.callbacks", "elasticdl.callbacks"} {
		values[path+".LearningRateScheduler"] = function(signature{name: "LearningRateScheduler", positional: []string{"schedule"}}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
			f, ok := a.values["schedule"].(*starlark.Function)
			if !ok || f.NumParams() != 1 || f.HasVarargs() || f.HasKwargs() {
				a.wrong("schedule", "a function of the number of the step")
			}
			return &rateSchedule{f}, a.err
		})
		for _, name := range []string{"MaxStepsStopping", "SavedModelExporter"} {
			values[path+"."+name] = unknown{name, "is not implemented: the job says how long to train, and its output directory is where the model is saved"}
		}
	}
	for _, name := range []string{"LearningRateScheduler", "EarlyStopping", "ReduceLROnPlateau", "ModelCheckpoint", "TensorBoard"} {
		values["tensorflow.keras.callbacks."+name] = unknown{
			"tf.keras.callbacks." + name, "is not implemented; elasticdl.python.elasticdl.callbacks.LearningRateScheduler, a schedule by steps, is",
		}
	}
	const build = "is not implemented; build the network from tf.keras.layers in custom_model(), as the built-in model resnet does (`elastic-trainer model resnet --source`), or train a PyTorch script"
	for _, name := range []string{"ResNet50", "ResNet101", "ResNet50V2", "MobileNet", "MobileNetV2", "VGG16", "VGG19", "InceptionV3", "DenseNet121", "Xception", "EfficientNetB0"} {
		values["tensorflow.keras.applications."+name] = unknown{"tf.keras.applications." + name, build}
	}
	for name, alternative := range map[string]string{
		"layers.ZeroPadding2D":      "give the convolution padding=\"same\"",
		"layers.Lambda":             "write a class of tf.keras.layers.Layer whose call computes it, or the operators themselves",
		"layers.DepthwiseConv2D":    "use Conv2D",
		"layers.SeparableConv2D":    "use Conv2D",
		"layers.LSTM":               "train a PyTorch script for recurrent networks",
		"layers.GRU":                "train a PyTorch script for recurrent networks",
		"layers.LayerNormalization": "use BatchNormalization, or train a PyTorch script",
		"layers.MultiHeadAttention": "train a PyTorch script",
		"regularizers.l1":           "leave the regularizer out, or train a PyTorch script",
		"regularizers.l2":           "leave the regularizer out, or train a PyTorch script",
	} {
		values["tensorflow.keras."+name] = unknown{"tf.keras." + name, "is not implemented; " + alternative}
	}
	for class, format := range map[string]string{
		"recordio_reader.RecordIODataReader": "RecordIO", "csv_reader.CSVDataReader": "CSV", "text_reader.TextDataReader": "CSV",
	} {
		values["elasticdl.python.data.reader."+class] = starlark.NewBuiltin(class[strings.IndexByte(class, '.')+1:],
			func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
				return dataReader(format), nil
			})
	}
	return values
}

// namedTuple makes a class of tuples with names.
func namedTuple(a *arguments) (starlark.Value, error) {
	name := a.text("typename", "")
	var fields []string
	switch v := a.values["field_names"].(type) {
	case starlark.String:
		fields = strings.Fields(strings.ReplaceAll(string(v), ",", " "))
	default:
		fields = a.words("field_names")
	}
	if a.err != nil {
		return nil, a.err
	}
	sig := signature{name: name, positional: fields}
	return function(sig, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		o := &object{class: &class{name: name, builtin: objectBase, members: starlark.NewDict(0)}, fields: starlark.StringDict{}}
		for _, f := range fields {
			if !a.has(f) {
				a.wrong(f, "")
				return nil, a.err
			}
			o.fields[f] = a.values[f]
		}
		return o, nil
	}), nil
}

// accumulate is the list of the sums up to each element.
func accumulate(s *session, a *arguments) (starlark.Value, error) {
	list, ok := a.values["iterable"].(starlark.Sequence)
	if !ok || list.Len() > s.limits.sequenceSize {
		a.wrong("iterable", "a list")
		return nil, a.err
	}
	var sums []starlark.Value
	var sum starlark.Value
	for v := range starlark.Elements(list) {
		if sum == nil {
			sum = v
		} else {
			var err error
			if sum, err = operate(s, operatorTokens["+"], sum, v); err != nil {
				return nil, err
			}
		}
		sums = append(sums, sum)
	}
	return starlark.NewList(sums), nil
}

// dataReader is one of ElasticDL's readers: of a format that the trainer reads by itself.
type dataReader string

func (r dataReader) String() string        { return string(r) + " reader" }
func (r dataReader) Type() string          { return "data reader" }
func (r dataReader) Freeze()               {}
func (r dataReader) Truth() starlark.Bool  { return true }
func (r dataReader) Hash() (uint32, error) { return starlark.String(r).Hash() }

// dataReader accepts a custom_data_reader() that makes one of ElasticDL's readers, and refuses any other: what it reads
// would not be what the job is trained on.
func (l *loader) dataReader() error {
	const name = "custom_data_reader"
	f, ok := l.globals[name]
	if !ok {
		return nil
	}
	const instead = "the trainer reads RecordIO, TFRecord, IDX and CSV files by itself: write the records to one of them with `elastic-trainer data convert`, and leave custom_data_reader out"
	fn, ok := f.(*starlark.Function)
	if !ok {
		return l.refuse(name, "custom_data_reader is %s; %s", printed(f), instead)
	}
	args := starlark.Tuple{starlark.String("data")}
	if fn.NumParams() == 0 {
		args = nil
	}
	v, err := starlark.Call(l.thread, fn, args, nil)
	if err != nil {
		located := l.locate(err)
		located.Msg = "custom_data_reader: " + located.Msg + "; " + instead
		return located
	}
	reader, ok := v.(dataReader)
	if !ok {
		return l.refuse(name, "custom_data_reader makes %s; %s", printed(v), instead)
	}
	add(&l.session.report.Notices, l.placeOf(name), "custom_data_reader has no effect: the trainer reads %s files by itself", string(reader))
	return nil
}

// rateSchedule is ElasticDL's LearningRateScheduler: a function of the number of the step.
type rateSchedule struct{ f *starlark.Function }

func (r *rateSchedule) String() string        { return "LearningRateScheduler" }
func (r *rateSchedule) Type() string          { return "callback" }
func (r *rateSchedule) Freeze()               { r.f.Freeze() }
func (r *rateSchedule) Truth() starlark.Bool  { return true }
func (r *rateSchedule) Hash() (uint32, error) { return 0, errors.New("a callback cannot be a key") }

// at is the schedule, for any goroutine: what the function refers to is frozen, and every call has a thread of its own.
func (r *rateSchedule) at(file string, most limits) func(step int64) (float64, error) {
	r.f.Freeze()
	return func(step int64) (float64, error) {
		s := &session{limits: most}
		v, err := starlark.Call(s.thread(file), r.f, starlark.Tuple{starlark.MakeInt64(step)}, nil)
		if err != nil {
			return 0, (&loader{file: file}).locate(err)
		}
		rate, ok := asNumber(v)
		if !ok || !(rate > 0) {
			return 0, (&loader{file: file}).locate(refuseAt(placeIn(file, r.f.Position()), "the schedule of the learning rate gives %s for step %d; a number above 0 is wanted", printed(v), step))
		}
		return rate, nil
	}
}

// maxNested is how deep models may be in one another: one that is a layer of itself never ends.
const maxNested = 50

// sequential is a tf.keras.Sequential: layers one behind the other.
type sequential struct {
	name   string
	layers []starlark.Value
}

func (m *sequential) String() string        { return "model " + m.name }
func (m *sequential) Type() string          { return "model" }
func (m *sequential) Name() string          { return m.name }
func (m *sequential) Freeze()               {}
func (m *sequential) Truth() starlark.Bool  { return true }
func (m *sequential) Hash() (uint32, error) { return 0, errors.New("a model cannot be a key") }
func (m *sequential) AttrNames() []string   { return []string{"add"} }

// Attr offers add.
func (m *sequential) Attr(name string) (starlark.Value, error) {
	if name != "add" {
		return nil, noAttribute(m, name)
	}
	return method("add", signature{name: "add", positional: []string{"layer"}}, func(_ *starlark.Thread, a *arguments) (starlark.Value, error) {
		if _, ok := a.values["layer"].(starlark.Callable); !ok {
			a.wrong("layer", "a layer")
			return nil, a.err
		}
		m.layers = append(m.layers, a.values["layer"])
		return starlark.None, nil
	}), nil
}

// CallInternal applies the layers in turn.
func (m *sequential) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a, err := signature{name: m.name, positional: []string{"inputs"}, keywords: []string{"training"}}.bind(args, kwargs)
	if err != nil {
		return nil, err
	}
	s := sessionOf(t)
	if s.nested++; s.nested > maxNested {
		return nil, fmt.Errorf("%s: models are nested deeper than %d", m.name, maxNested)
	}
	defer func() { s.nested-- }()
	v := a.values["inputs"]
	for _, l := range m.layers {
		if err := s.spend(callBytes); err != nil {
			return nil, err
		}
		if v, err = starlark.Call(t, l, starlark.Tuple{v}, nil); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func sequentialFunction(name string) starlark.Value {
	return function(signature{name: name, positional: []string{"layers"}, keywords: []string{"name"}}, func(t *starlark.Thread, a *arguments) (starlark.Value, error) {
		g := sessionOf(t).layers
		if g == nil {
			return nil, fmt.Errorf("%s is made outside of the model", name)
		}
		given := ""
		if !a.none("name") {
			given = a.text("name", "")
		}
		m := &sequential{name: g.name("sequential", given)}
		if list, ok := a.values["layers"].(*starlark.List); ok {
			m.layers = slices.Collect(list.Elements())
		} else if !a.none("layers") {
			a.wrong("layers", "a list of layers")
		}
		for _, l := range m.layers {
			if _, ok := l.(starlark.Callable); !ok {
				return nil, fmt.Errorf("%s: %s is no layer (an Input is not needed: the model has its inputs from feed)", name, printed(l))
			}
		}
		return m, a.err
	})
}
