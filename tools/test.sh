#!/usr/bin/env bash
# test.sh quick|all [GO TEST FLAGS]: the tests of every module, also after one that fails; then what took longest.
#
#   quick  unit tests, without the exhaustive ones (go test -short), and package promises on an embedded cluster
#   all    every test; a test of module e2e that fails is run up to two times more, and reported if it passes then
#
# e2e/out has packages.json (times), flakes.json (tests that passed only when repeated), and tests/ (JUnit XML, events).
set -uo pipefail
cd "$(dirname "$0")/.."
tier=$1
shift
flags=("$@")

out=$PWD/e2e/out
rm -rf "$out/tests"
mkdir -p "$out/tests"

# Packages that have tests. The others would be compiled for nothing, the control plane among them: once more with -race.
tested='{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}'
# These start clusters. In the quick tier there is one cluster, that of package promises.
clusters='/e2e/(cmd/recording|examples|forecast|kueue|promises|provider|scenario/embedded|scenario/onkind|status|task|training|truth|tutorial|underqueue)$|/simcluster$'
# These take longest, and start first: at the end of a module a package would have the machine to itself.
longest='/e2e/provider$|/e2e/scenario/embedded$'
# What several goroutines share is tested with the race detector too.
concurrent='/internal/trainer/(protocol/(coordinator|group|wire)|runtime/(allreduce|master|worker))$'

failed=()
promises=
trap 'if [ -n "$promises" ]; then kill "$promises" 2>/dev/null; fi; exit 130' INT TERM

# run NAME MODULE RERUNS PACKAGES [GO TEST FLAGS]: tests packages of a module, a list with one in each line.
run() {
  local name=$1 module=$2 reruns=$3 packages=$4
  shift 4
  local rerun=()
  if [ "$reruns" -gt 0 ]; then rerun=(--rerun-fails="$reruns" --rerun-fails-max-failures=8 --rerun-fails-abort-on-data-race); fi
  # Without symbol tables test binaries link in two thirds of the time; stack traces keep their names and lines.
  (cd "$module" && "$OLDPWD/bin/gotestsum" --format pkgname --format-hide-empty-pkg --format-icons text --hide-summary skipped \
    --jsonfile "$out/tests/$name.json" --junitfile "$out/tests/$name.xml" "${rerun[@]}" --packages "$(tr '\n' ' ' <<<"$packages")" \
    -- -ldflags='-s -w' "$@" "${flags[@]}")
}

# list MODULE [GREP OPTION PATTERN]: packages with tests.
list() {
  local all
  all=$(go -C "$1" list -f "$tested" ./...) || exit 1
  shift
  grep -E "${@:-.}" <<<"$all"
}

case "$tier" in
quick)
  # The test on the cluster waits more than it computes: unit tests run meanwhile.
  run promises e2e 0 ./promises -timeout 25m >"$out/tests/promises.txt" 2>&1 &
  promises=$!
  for module in . simcluster e2e; do
    name=$([ "$module" = . ] && echo root || echo "$module")
    run "$name" "$module" 0 "$(list "$module" -v "$clusters")" -short -timeout 25m || failed+=("$name")
  done
  if command -v "${CC:-gcc}" >/dev/null; then
    CGO_ENABLED=1 run race . 0 "$(list . "$concurrent")" -short -race -timeout 25m || failed+=(race)
  else
    echo "The race detector needs a C compiler, and ${CC:-gcc} is not on PATH: its tests are left out."
  fi
  wait "$promises" || failed+=(promises)
  cat "$out/tests/promises.txt"
  ;;
all)
  # Tests of scripts run with the first PyTorch here, as part of their modules, and then once more with each other one.
  pytorch=$(tools/test-pytorch.sh --list) || exit 1
  read -ra pytorch <<<"${pytorch//$'\n'/ }"
  if [ ${#pytorch[@]} -gt 0 ]; then export ELASTIC_PYTHON=${pytorch[0]}; fi
  # A test that hangs fails before CI gives up on the whole run.
  for module in . simcluster; do
    name=$([ "$module" = . ] && echo root || echo "$module")
    run "$name" "$module" 0 "$(list "$module")" -timeout 40m || failed+=("$name")
  done
  run e2e e2e "$RERUNS" "$(list e2e "$longest"; list e2e -v "$longest")" -timeout 40m || failed+=(e2e)
  # The one module that compiles Kueue, which takes minutes the first time: not in the quick tier.
  run kueuedecisions e2e/kueuedecisions 0 "$(list e2e/kueuedecisions)" -timeout 40m || failed+=(kueuedecisions)
  if [ ${#pytorch[@]} -gt 1 ]; then PYTORCH="${pytorch[*]:1}" tools/test-pytorch.sh "${flags[@]}" || failed+=(pytorch); fi
  ;;
*)
  echo "test.sh: unknown tier $tier" >&2
  exit 2
  ;;
esac

echo
go -C e2e run ./cmd/testreport -out "$out" "$out"/tests/*.json || failed+=(report)
if [ ${#failed[@]} -gt 0 ]; then
  echo
  echo "Failed (see above): ${failed[*]}"
  exit 1
fi
