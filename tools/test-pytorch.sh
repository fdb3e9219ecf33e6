#!/usr/bin/env bash
# test-pytorch.sh [GO TEST FLAGS]: every test that runs scripts, with each interpreter of PYTORCH that is named there; without PYTORCH,
# with those found here that have PyTorch.
# test-pytorch.sh --list: these interpreters, one in each line.
set -euo pipefail
cd "$(dirname "$0")/.."

has_torch() { "$1" -c 'import torch' 2>/dev/null; }

interpreters() {
  local name path
  if [ -n "${PYTORCH:-}" ]; then
    for name in $PYTORCH; do
      path=$(command -v "$name") && has_torch "$path" || { echo "test-pytorch.sh: $name cannot import torch" >&2; return 1; }
      echo "$path"
    done
    return
  fi
  for path in /usr/bin/python3 $(command -v python3 || true); do
    if has_torch "$path"; then echo "$path"; fi
  done | sort -u
}

list=$(interpreters)
if [ "${1:-}" = --list ]; then
  printf '%s\n' $list | sed '/^$/d'
  exit
fi
if [ -z "$list" ]; then
  echo "No python3 here has PyTorch. Install it (on Debian: apt-get install python3-torch python3-numpy), or name one: PYTORCH=/path/to/python3" >&2
  exit 1
fi

versions='import sys, torch
from importlib.metadata import PackageNotFoundError, version
def installed(name):
    try:
        return "%s %s" % (name, version(name))
    except PackageNotFoundError:
        return "no " + name
gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
print("PyTorch %s, Python %s, %s, %s, %s, GPUs: %d" % (torch.__version__, sys.version.split()[0], *map(installed, ("accelerate", "transformers", "lightning")), gpus))'

# run MODULE [GO TEST FLAGS]: the tests in the files that look for PyTorch. None can be forgotten here.
run() {
  local module=$1 files names packages
  shift
  files=$(git -C "$module" ls-files -co --exclude-standard '*_test.go' | (cd "$module" && xargs grep -l 'torchtest\.'))
  if [ "$module" = . ]; then files=$(grep -v '^e2e/' <<<"$files"); fi
  names=$(cd "$module" && sed -n 's/^func \(Test[A-Z][A-Za-z0-9_]*\)(t \*testing\.T.*/\1/p' $files | paste -sd '|')
  packages=$(sed 's,[^/]*$,,; s,^,./,' <<<"$files" | sort -u)
  # The interpreter's modules are no input that go knows of: nothing is taken from its cache.
  go -C "$module" test -count=1 -p 1 -ldflags='-s -w' -timeout 40m -run "^($names)\$" "$@" $packages
}

failed=()
while read -r python; do
  echo "== $python: $("$python" -c "$versions")"
  export ELASTIC_PYTHON=$python ELASTIC_REQUIRE_PYTORCH=1
  for module in . e2e; do
    run "$module" "$@" || failed+=("$python in $module")
  done
done <<<"$list"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'Failed: %s\n' "${failed[@]}"
  exit 1
fi
