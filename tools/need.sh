#!/usr/bin/env bash
# need.sh TOOL: says in a sentence what is missing for this repository's targets, or nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# older A B: version A is lower than version B.
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

case "$1" in
go)
  want=$(sed -n 's/^go //p' go.mod)
  command -v go >/dev/null || {
    echo "Go is not on PATH. Install Go $want or later (https://go.dev/dl), then run make again." >&2
    exit 1
  }
  # GOTOOLCHAIN may fetch a newer Go by itself; what counts is what it ends with.
  have=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[ -].*//') || have=
  if [ -z "$have" ] || older "$have" "$want"; then
    echo "Go $want or later is needed; $(command -v go) is ${have:-older and may not fetch a newer one (GOTOOLCHAIN)}." >&2
    exit 1
  fi
  [ "$(uname -s)" = Linux ] || {
    echo "The embedded cluster runs on Linux only (this is $(uname -s)); use a Linux machine, a virtual machine or a container." >&2
    exit 1
  }
  ;;
terraform)
  want=1.8.0
  command -v terraform >/dev/null || {
    echo "terraform is not on PATH. Install Terraform $want or later (https://developer.hashicorp.com/terraform/install), then run make again." >&2
    exit 1
  }
  have=$(CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null terraform version | sed -n 's/^Terraform v\([0-9.]*\).*/\1/p')
  if [ -z "$have" ] || older "$have" "$want"; then
    echo "Terraform $want or later is needed; $(command -v terraform) is ${have:-of unknown version}." >&2
    exit 1
  fi
  ;;
protoc)
  # The generated file names the version that made it.
  want=$(sed -n 's/^\/\/ *\tprotoc  *v//p' internal/trainer/wire/wirepb/wire.pb.go)
  have=$(protoc --version 2>/dev/null | sed 's/^libprotoc //') || have=
  [ "$have" = "$want" ] || {
    echo "protoc $want is needed to generate internal/trainer/wire/wirepb, and there is ${have:-none} (on Debian 12 and 13: apt-get install protobuf-compiler; else https://github.com/protocolbuffers/protobuf/releases)." >&2
    exit 1
  }
  ;;
cc)
  command -v "${CC:-gcc}" >/dev/null || {
    echo "RACE=1 needs a C compiler for the race detector: ${CC:-gcc} is not on PATH (on Debian: apt-get install gcc libc6-dev)." >&2
    exit 1
  }
  ;;
*)
  echo "need.sh: unknown tool $1" >&2
  exit 2
  ;;
esac
