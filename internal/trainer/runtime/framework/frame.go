package framework

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"

	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/ml/nn"
	"github.com/elastic-training/terraform-provider-elastic/internal/trainer/protocol/wire"
)

// protocolVersion is the version of the frames, PROTOCOL_VERSION in the Python module. Any other version is rejected.
const protocolVersion = 2

// kind is the type of a request or response.
type kind uint8

const (
	askDescribe kind = iota + 1
	askInitial
	askLoad
	askGradient
	askApply
	askEvaluate

	answerFailed kind = 255 // responses only
)

func (k kind) String() string {
	switch k {
	case askDescribe:
		return "describe"
	case askInitial:
		return "initial state"
	case askLoad:
		return "load"
	case askGradient:
		return "gradient"
	case askApply:
		return "apply"
	case askEvaluate:
		return "evaluate"
	case answerFailed:
		return "error"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// frameSize is the size of the prefix of every frame: "EL", version, kind, the header's length (uint32) and the
// body's (uint64), little-endian.
const frameSize = 16

// maxHeader bounds a JSON header. A description has some 100 bytes for each tensor.
const maxHeader = 16 << 20

// writeFrame sends one request. Its body is the concatenation of the parts.
func writeFrame(w io.Writer, k kind, header any, body ...[]byte) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	length := 0
	for _, b := range body {
		length += len(b)
	}
	head := append(make([]byte, 0, frameSize+len(text)), 'E', 'L', protocolVersion, byte(k))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(text)))
	head = binary.LittleEndian.AppendUint64(head, uint64(length))
	parts := append(net.Buffers{append(head, text...)}, body...)
	_, err = parts.WriteTo(w)
	return err
}

// readFrame reads the response to a request of kind k: its header into reply, its body into body, whose length it must
// have. A response that reports an error is a *scriptError. It allocates no more than it reads.
func readFrame(r io.Reader, k kind, reply any, body []float32) error {
	length, err := readHead(r, k, reply)
	if err != nil {
		return err
	}
	raw := wire.Bytes(body)
	if length != uint64(len(raw)) {
		return fmt.Errorf("the answer to %q has %d bytes, and should have %d", k, length, len(raw))
	}
	_, err = io.ReadFull(r, raw)
	return err
}

// readInitial reads the initial state, of n floats. n comes from the script's description and is not trusted.
func readInitial(r io.Reader, n int) ([]float32, error) {
	length, err := readHead(r, askInitial, &struct{}{})
	if err != nil {
		return nil, err
	}
	if length != 4*uint64(n) {
		return nil, fmt.Errorf("the answer to %q has %d bytes, and its description makes it %d", askInitial, length, 4*n)
	}
	var raw bytes.Buffer
	if _, err := io.CopyN(&raw, r, int64(length)); err != nil {
		return nil, unexpected(err)
	}
	state := make([]float32, n)
	copy(wire.Bytes(state), raw.Bytes())
	return state, nil
}

// readHead reads a response up to its body, whose length it returns.
func readHead(r io.Reader, k kind, reply any) (uint64, error) {
	var head [frameSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	if head[0] != 'E' || head[1] != 'L' {
		return 0, fmt.Errorf("an answer begins with % x; something else than the module elastic_training writes to the socket", head[:4])
	}
	if head[2] != protocolVersion {
		return 0, fmt.Errorf("the script speaks version %d of the protocol and this elastic-trainer version %d; use the module that `elastic-trainer python-module` writes", head[2], protocolVersion)
	}
	headerLength, bodyLength := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint64(head[8:])
	if headerLength > maxHeader || bodyLength > math.MaxInt64 {
		return 0, fmt.Errorf("an answer with a header of %d and a body of %d bytes", headerLength, bodyLength)
	}
	var header bytes.Buffer
	if _, err := io.CopyN(&header, r, int64(headerLength)); err != nil {
		return 0, unexpected(err)
	}
	switch got := kind(head[3]); {
	case got == answerFailed:
		e := &scriptError{}
		if err := json.Unmarshal(header.Bytes(), e); err != nil {
			return 0, fmt.Errorf("the answer to %q is an error that cannot be read: %w", k, err)
		}
		return 0, e
	case got != k:
		return 0, fmt.Errorf("the answer to %q is one to %q", k, got)
	}
	if err := json.Unmarshal(header.Bytes(), reply); err != nil {
		return 0, fmt.Errorf("the answer to %q: %w", k, err)
	}
	return bodyLength, nil
}

// unexpected turns the end of a connection in the middle of a frame into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// scriptError is an error that the script reports in its response. The script keeps running.
type scriptError struct {
	Message   string `json:"message"`
	NotFinite bool   `json:"not_finite"`
}

func (e *scriptError) Error() string { return e.Message }

// Unwrap makes a loss that is not finite the same error as in our own networks: it is the same on every worker.
func (e *scriptError) Unwrap() error {
	if e.NotFinite {
		return nn.ErrNotFinite
	}
	return nil
}
