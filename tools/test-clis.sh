#!/usr/bin/env bash
# test-clis.sh "COMMAND LINES" PACKAGE…: the end-to-end tests of these packages with each command line, also after one
# with which they fail. A command line is a folder of bin/clis, or "installed": the terraform on PATH.
set -uo pipefail
cd "$(dirname "$0")/.."
path=$PATH failed=()
for name in $1; do
  if [ "$name" = installed ]; then PATH=$path; else PATH=$PWD/bin/clis/$name:$path; fi
  said=$(TF_CLI_CONFIG_FILE=/dev/null terraform version) || exit 1
  echo "With $(head -n 1 <<<"$said"):"
  # The same program may have been replaced by a newer one: what a test has printed before says nothing then.
  go -C e2e test -count=1 -ldflags='-s -w' -p 2 -timeout 25m "${@:2}" || failed+=("$name")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "Failed with: ${failed[*]}"
  exit 1
fi
