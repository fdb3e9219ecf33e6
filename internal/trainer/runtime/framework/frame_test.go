package framework

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// answer is a response as a script sends it.
func answer(k kind, header string, body ...float32) []byte {
	b := []byte{'E', 'L', protocolVersion, byte(k)}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	b = binary.LittleEndian.AppendUint64(b, uint64(4*len(body)))
	return append(append(b, header...), wire.Bytes(body)...)
}

func TestAnAnswerIsReadAsItWasSent(t *testing.T) {
	var m measured
	body := make([]float32, 3)
	if err := readFrame(bytes.NewReader(answer(askGradient, `{"loss_sum": 2.5, "counts": [7]}`, 1, 2, 3)), askGradient, &m, body); err != nil {
		t.Fatal(err)
	}
	if m.LossSum != 2.5 || !slices.Equal(m.Counts, []int64{7}) || !slices.Equal(body, []float32{1, 2, 3}) {
		t.Errorf("%+v %v", m, body)
	}
	state, err := readInitial(bytes.NewReader(answer(askInitial, `{}`, 4, 5)), 2)
	if err != nil || !slices.Equal(state, []float32{4, 5}) {
		t.Errorf("state %v: %v", state, err)
	}
}

func TestAnAnswerThatIsNoneIsRefusedWithWhatWasFound(t *testing.T) {
	whole := answer(askGradient, `{"loss_sum": 1}`, 1, 2)
	other := slices.Clone(whole)
	other[2] = 9
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"nothing":               {nil, "EOF"},
		"the middle of a frame": {whole[:10], "unexpected EOF"},
		"half a header":         {whole[:20], "unexpected EOF"},
		"half a body":           {whole[:len(whole)-1], "unexpected EOF"},
		"something printed":     {[]byte("Hello, this is not for you"), "something else than the module"},
		"another version":       {other, "version 9"},
		"another question's":    {answer(askApply, `{}`, 1, 2), `one to "apply"`},
		"an unknown kind":       {answer(77, `{}`, 1, 2), `one to "kind 77"`},
		"another length":        {answer(askGradient, `{}`, 1, 2, 3), "has 12 bytes, and should have 8"},
		"no JSON":               {answer(askGradient, `loss: 1`, 1, 2), "invalid character"},
		"an endless header":     {append([]byte("EL\x02\x04"), bytes.Repeat([]byte{0xff}, 12)...), "a header of 4294967295"},
		"an unreadable error":   {answer(answerFailed, `[]`), "an error that cannot be read"},
		"an error":              {answer(answerFailed, `{"message": "ValueError: no"}`), "ValueError: no"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readFrame(bytes.NewReader(c.bytes), askGradient, &measured{}, make([]float32, 2))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; wanted %q", err, c.want)
			}
		})
	}
}

func TestALossThatIsNotFiniteIsTheSameErrorAsOurOwnNetworks(t *testing.T) {
	err := readFrame(bytes.NewReader(answer(answerFailed, `{"message": "diverged", "not_finite": true}`)), askGradient, &measured{}, nil)
	if !errors.Is(err, nn.ErrNotFinite) {
		t.Errorf("%v", err)
	}
	err = readFrame(bytes.NewReader(answer(answerFailed, `{"message": "a bug"}`)), askGradient, &measured{}, nil)
	if err == nil || errors.Is(err, nn.ErrNotFinite) {
		t.Errorf("%v", err)
	}
}

func TestAFrameWithALargeDeclaredSizeAllocatesLittle(t *testing.T) {
	head := answer(askInitial, `{}`)
	const claimed = 1 << 32
	binary.LittleEndian.PutUint64(head[8:], 4*claimed)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := readInitial(bytes.NewReader(head), claimed); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("allocated %d bytes for a frame of %d", grown, len(head))
	}
}

// FuzzAnswer checks that no bytes of a script crash the reader or make it read beyond them, and that whatever it
// accepts is a valid response.
func FuzzAnswer(f *testing.F) {
	f.Add(answer(askGradient, `{"loss_sum": 2.5, "counts": [7]}`, 1, 2))
	f.Add(answer(askInitial, `{}`, 1, 2))
	f.Add(answer(answerFailed, `{"message": "diverged", "not_finite": true}`))
	f.Add([]byte("EL\x02\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		body := make([]float32, 2)
		if err := readFrame(bytes.NewReader(b), askGradient, &measured{}, body); err == nil && (b[3] != byte(askGradient) || len(b) < frameSize+8) {
			t.Errorf("took % x for an answer", b)
		}
		if state, err := readInitial(bytes.NewReader(b), 2); err == nil && len(state) != 2 {
			t.Errorf("a state of %d", len(state))
		}
		var d Description
		if err := readFrame(bytes.NewReader(b), askDescribe, &d, nil); err == nil {
			if l, err := layOut(d); err == nil && (l.parameters < 1 || l.state < l.parameters+l.statistics) {
				t.Errorf("laid out %+v as %+v", d, l)
			}
		}
	})
}
