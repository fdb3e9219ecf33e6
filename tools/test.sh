#!/usr/bin/env bash
# test.sh [GO TEST FLAGS]: the tests of every module, also after one that fails; then the ten packages that took longest.
set -uo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp -t test.XXXXXX)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT # go test ends with 1 then, and the next module would begin

# Packages that have tests. The others would be compiled for nothing, the control plane among them: once more with -race.
tested='{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}'

# These take longest, and start first: at the end of a module a package would have the machine to itself.
longest='/e2e/provider$|/e2e/scenario/embedded$'

failed=()
for module in . simcluster e2e; do
  packages=$(go -C "$module" list -f "$tested" ./...) || exit 1
  packages=$(grep -E "$longest" <<<"$packages"; grep -vE "$longest" <<<"$packages")
  # A test that hangs fails before CI gives up on the whole run (90 minutes).
  # Without symbol tables test binaries link in two thirds of the time; stack traces keep their names and lines.
  # shellcheck disable=SC2086 # one word for each package
  go -C "$module" test -ldflags='-s -w' "$@" -timeout 40m $packages 2>&1 | tee -a "$log" ||
    failed+=("$module")
done

echo
echo "The ten packages that took longest:"
awk '($1 == "ok" || $1 == "FAIL") && $3 ~ /^[0-9.]+s$/ { print "  " $3 "\t" $2 }' "$log" | sort -rn | head -n 10
if [ ${#failed[@]} -gt 0 ]; then
  echo
  echo "Failed, by module (\".\" is the repository's root): ${failed[*]}"
  grep -E '^(--- FAIL|FAIL[[:space:]]|panic: |fatal error: |SIG[A-Z]+: )' "$log" || true
  exit 1
fi
