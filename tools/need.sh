#!/usr/bin/env bash
# need.sh TOOL: says in a sentence what is missing for this repository's targets, or nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

# older A B: version A is lower than version B.
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# refuse SENTENCE: ends with it.
refuse() {
  echo "$1" >&2
  exit 1
}

case "$1" in
go)
  want=$(sed -n 's/^go //p' go.mod)
  install="Install Go $want or later (https://go.dev/dl), then run make again."
  command -v go >/dev/null || refuse "go is not on PATH. $install"
  # GOTOOLCHAIN may fetch a newer Go by itself; what counts is what it ends with.
  have=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[ -].*//') || have=
  if [ -z "$have" ] || older "$have" "$want"; then
    refuse "$(command -v go) is too old: it is ${have:-older than Go $want and did not fetch a newer one (GOTOOLCHAIN)}. $install"
  fi
  ;;
linux)
  [ "$(uname -s)" = Linux ] ||
    refuse "The embedded cluster runs on Linux only, and this is $(uname -s). Use a Linux machine, a virtual machine or a container; or a kind cluster (examples/kind; make e2e-kind)."
  ;;
git)
  command -v git >/dev/null || refuse "git is not on PATH. Install git (on Debian: apt-get install git; https://git-scm.com/downloads), then run make again."
  ;;
engine)
  for engine in ${KIND_EXPERIMENTAL_PROVIDER:-docker nerdctl podman}; do
    if command -v "$engine" >/dev/null; then exit 0; fi
  done
  refuse "Skipped: a kind cluster needs a container engine, and there is none on PATH (${KIND_EXPERIMENTAL_PROVIDER:-docker, nerdctl or podman}). Install one (https://docs.docker.com/engine/install; on Debian: apt-get install docker.io, or podman), then run make again."
  ;;
terraform | tofu)
  want=1.8.0
  install="Install Terraform $want or later (https://developer.hashicorp.com/terraform/install), then run make again."
  command -v "$1" >/dev/null || refuse "$1 is not on PATH. $install"
  # A terraform may also be OpenTofu by that name, which has the same numbers.
  have=$(CHECKPOINT_DISABLE=1 TF_CLI_CONFIG_FILE=/dev/null "$1" version | sed -nE 's/^(Terraform|OpenTofu) v([0-9.]*).*/\2/p')
  if [ -z "$have" ] || older "$have" "$want"; then
    refuse "$(command -v "$1") is too old: it is ${have:-of a version that it does not say}. $install"
  fi
  ;;
protoc)
  # The generated file names the version that made it.
  want=$(sed -n 's/^\/\/ *\tprotoc  *v//p' internal/trainer/protocol/wire/wirepb/wire.pb.go)
  have=$(protoc --version 2>/dev/null | sed 's/^libprotoc //') || have=
  [ "$have" = "$want" ] ||
    refuse "protoc $want is needed to generate internal/trainer/protocol/wire/wirepb, and there is ${have:-none} (on Debian 12 and 13: apt-get install protobuf-compiler; else https://github.com/protocolbuffers/protobuf/releases)."
  ;;
cc)
  command -v "${CC:-gcc}" >/dev/null ||
    refuse "RACE=1 needs a C compiler for the race detector, and ${CC:-gcc} is not on PATH. Install one (on Debian: apt-get install gcc libc6-dev), then run make again."
  ;;
*)
  echo "need.sh: unknown tool $1" >&2
  exit 2
  ;;
esac
