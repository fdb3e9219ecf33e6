// Package wire carries messages and tensors between master and workers: one bidirectional gRPC stream for each worker,
// with a codec in which a frame is a small protobuf message followed by raw float32 values. It makes no decisions;
// packages master and worker interpret the messages.
package wire

//go:generate sh -c "go build -o ../../../../bin/ google.golang.org/protobuf/cmd/protoc-gen-go && PATH=$PWD/../../../../bin:$PATH protoc --proto_path=wirepb --go_out=wirepb --go_opt=paths=source_relative wire.proto"
