package example

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// eachFeature calls visit with the name and the bytes of every feature of a tf.train.Example. A key that occurs more
// than once is visited more than once; the last visit counts.
func eachFeature(record []byte, visit func(name, feature []byte) error) error {
	return eachField(record, 0, func(field protowire.Number, features []byte, at int) error {
		if field != 1 { // Example.features
			return nil
		}
		return eachField(features, at, func(field protowire.Number, entry []byte, at int) error {
			if field != 1 { // Features.feature, a map
				return nil
			}
			var name, feature []byte
			err := eachField(entry, at, func(field protowire.Number, b []byte, _ int) error {
				switch field {
				case 1:
					name = b
				case 2:
					feature = b
				}
				return nil
			})
			if err != nil {
				return err
			}
			return visit(name, feature)
		})
	})
}

// eachField calls visit with every length-delimited field of a message; others are skipped. base is the message's
// offset in the record, and at the field's.
func eachField(message []byte, base int, visit func(field protowire.Number, b []byte, at int) error) error {
	for at := 0; at < len(message); {
		field, wire, n := protowire.ConsumeTag(message[at:])
		if n < 0 {
			return malformed(base+at, n)
		}
		at += n
		if wire != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(field, wire, message[at:]); n < 0 {
				return malformed(base+at, n)
			}
			at += n
			continue
		}
		b, n := protowire.ConsumeBytes(message[at:])
		if n < 0 {
			return malformed(base+at, n)
		}
		at += n
		if err := visit(field, b, base+at-len(b)); err != nil {
			return err
		}
	}
	return nil
}

// eachList calls visit with every list of a tf.train.Feature: more than one only where a writer merged messages.
func eachList(feature []byte, visit func(kind Kind, list []byte) error) error {
	return eachField(feature, 0, func(field protowire.Number, list []byte, _ int) error {
		if field < protowire.Number(BytesKind) || field > protowire.Number(Int64Kind) {
			return nil
		}
		return visit(Kind(field), list)
	})
}

// eachValue calls visit with every value of a list, packed or not: numbers as bits, strings as payload.
func eachValue(kind Kind, list []byte, visit func(payload []byte, bits uint64)) error {
	for len(list) > 0 {
		field, wire, n := protowire.ConsumeTag(list)
		if n < 0 {
			return malformed(0, n)
		}
		list = list[n:]
		if n = protowire.ConsumeFieldValue(field, wire, list); n < 0 {
			return malformed(0, n)
		}
		raw := list[:n]
		list = list[n:]
		if field != 1 {
			continue
		}
		packed := wire == protowire.BytesType
		if packed {
			raw, _ = protowire.ConsumeBytes(raw)
		}
		switch {
		case kind == BytesKind && packed:
			visit(raw, 0)
		case kind == FloatKind && (packed || wire == protowire.Fixed32Type):
			if len(raw)%4 != 0 {
				return fmt.Errorf("%w: a packed float_list of %d bytes, which is no multiple of 4", ErrMalformed, len(raw))
			}
			for ; len(raw) > 0; raw = raw[4:] {
				visit(nil, uint64(binary.LittleEndian.Uint32(raw)))
			}
		case kind == Int64Kind && (packed || wire == protowire.VarintType):
			for len(raw) > 0 {
				v, n := protowire.ConsumeVarint(raw)
				if n < 0 {
					return malformed(0, n)
				}
				raw = raw[n:]
				visit(nil, v)
			}
		}
	}
	return nil
}

func malformed(at, n int) error {
	return fmt.Errorf("%w: at byte %d: %w", ErrMalformed, at, protowire.ParseError(n))
}
