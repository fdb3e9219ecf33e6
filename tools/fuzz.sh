#!/usr/bin/env bash
# fuzz.sh [PATTERN...]: runs the fuzz targets of fuzz-targets.txt one after the other, or those whose lines match a pattern,
# each for FUZZTIME (10m) in one process that may have 512 MiB of memory of its own. It continues after a finding, which is
# then in the package's testdata/fuzz, and fails at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d -t fuzz.XXXXXX)
trap 'rm -rf "$work"' EXIT
targets=$(grep -vE '^(#|$)' tools/fuzz-targets.txt)
[ $# -eq 0 ] || targets=$(grep -E "$(IFS='|'; echo "$*")" <<<"$targets")

failed=0
while read -r package target _; do
  module=.
  [[ $package != simcluster/* ]] || module=simcluster
  binary=$work/$(tr / - <<<"$package").test
  [ -e "$binary" ] || go -C "$module" test -c -fuzz=. -o "$binary" "./${package#"$module"/}"
  echo "== $package $target"
  # -d limits private memory alone: the fuzzer shares 100 MiB with its worker.
  (cd "$package" && ulimit -d 524288 && GOMEMLIMIT=400MiB exec nice "$binary" -test.run='^$' -test.fuzz="^$target\$" -test.parallel=1 \
    -test.fuzzminimizetime=100x -test.fuzztime="${FUZZTIME:-10m}" -test.fuzzcachedir="$work/corpus/$package") </dev/null || failed=1
done <<<"$targets"
exit "$failed"
