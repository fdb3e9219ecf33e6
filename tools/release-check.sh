#!/usr/bin/env bash
# release-check.sh [VERSION [DIR]]: builds every binary of .goreleaser.yml with plain `go build`, in the work tree and in a clone of its
# commit elsewhere, and compares the two; with DIR also with the archives in it, of that version's release. ONLY=linux/amd64 builds only
# the targets whose name contains this. --list prints the targets, which release_test.go compares with .goreleaser.yml.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-0.0.0} published=${2:-} differ=0

targets() {
  for processor in amd64 arm64; do
    for system in linux darwin windows; do
      echo "provider . $system $processor"
      echo "elastic-sim ./cmd/elastic-sim $system $processor"
    done
    echo "elastic-trainer ./cmd/elastic-trainer linux $processor"
  done
}

# released PROGRAM SYSTEM PROCESSOR: the binary in its archive, as .goreleaser.yml names both.
released() {
  local end=
  [ "$2" != windows ] || end=.exe
  case "$1 $2" in
  provider*) unzip -p "$published/terraform-provider-elastic_${version}_$2_$3.zip" "terraform-provider-elastic_v$version$end" ;;
  *windows) unzip -p "$published/elastic-tools_${version}_$2_$3.zip" "$1$end" ;;
  *) tar -xzOf "$published/elastic-tools_${version}_$2_$3.tar.gz" "$1" ;;
  esac
}

# build ROOT FILE: the target, from a tree.
build() {
  GOFLAGS='' CGO_ENABLED=0 GOOS=$system GOARCH=$processor \
    go -C "$1" build -o "$2" -ldflags "-s -w -X main.version=$version" $flags "$main"
}

if [ "$version" = --list ]; then
  targets
  exit
fi
flags=$(sed -n 's/^export GOFLAGS := //p' GNUmakefile)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-hardlinks . "$work/another/place"
while read -r program main system processor; do
  [[ "$program $system/$processor" == *"${ONLY:-}"* ]] || continue
  build . "$work/here"
  build "$work/another/place" "$work/there"
  verdict=identical
  cmp -s "$work/here" "$work/there" || verdict=DIFFERENT
  if [ -n "$published" ]; then
    released "$program" "$system" "$processor" >"$work/released"
    cmp -s "$work/here" "$work/released" || verdict='NOT WHAT WAS PUBLISHED'
  fi
  [ "$verdict" = identical ] || differ=$((differ + 1))
  printf '%-15s  %-14s  %.16s  %-9s  %d kB\n' "$program" "$system/$processor" "$(sha256sum "$work/here" 2>/dev/null || shasum -a 256 "$work/here")" \
    "$verdict" $(($(wc -c <"$work/here") / 1000))
done < <(targets)
if [ $differ -gt 0 ]; then
  echo "release-check: $differ binaries differ between the work tree, a clone of its commit${published:+ and the archives in $published}:" \
    "commit first, or check out the release's tag, and use the Go that go.mod names; otherwise a path or a time is built in" >&2
  exit 1
fi
