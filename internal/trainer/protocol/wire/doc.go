// Package wire carries messages and tensors between master and workers: one bidirectional gRPC stream per worker
// with a codec of our own, in which a frame is a small protobuf message followed by raw float32 values. It decides
// nothing; what a message means is for packages master and worker.
package wire

//go:generate sh -c "go build -o ../../../../bin/ google.golang.org/protobuf/cmd/protoc-gen-go && PATH=$PWD/../../../../bin:$PATH protoc --proto_path=wirepb --go_out=wirepb --go_opt=paths=source_relative wire.proto"
