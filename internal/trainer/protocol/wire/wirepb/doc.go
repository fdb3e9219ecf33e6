// Package wirepb is the messages of wire.proto as protoc-gen-go writes them. Package wire generates and carries them;
// what they mean is said in wire.proto.
package wirepb
