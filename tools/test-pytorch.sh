#!/usr/bin/env bash
# test-pytorch.sh [GO TEST FLAGS]: every test that runs scripts, with each interpreter of PYTORCH that is named there; without PYTORCH,
# with those found here that have PyTorch. A folder that holds another distribution (of debootstrap, or a container image that was
# unpacked) stands for its /usr/bin/python3, and needs root.
# test-pytorch.sh --list: these interpreters, one in each line.
set -euo pipefail
cd "$(dirname "$0")/.."

has_torch() { "$1" -c 'import torch' 2>/dev/null; }

# same_root INTERPRETER: whether it has this machine's root directory. In another, it would not see the volumes of a pod.
same_root() { [ "$("$1" -c 'import os; s = os.stat("/"); print(s.st_dev, s.st_ino)')" = "$(stat -c '%d %i' /)" ]; }

# of_folder FOLDER: makes a command that runs the python3 in it, as if it were installed here, and prints its path. Only what such a
# python3 is made of is the folder's, so that all else has the same path in it: tests, their directories, and the volumes of a pod.
of_folder() {
  local folder command
  folder=$(cd "$1" && pwd) command=$PWD/bin/python-${folder##*/}
  mkdir -p bin
  { printf '#!/usr/bin/env bash\nfolder=%q\n' "$folder"; cat <<'COMMAND'; } >"$command"
if [ "${PYTHON_OF_FOLDER:-}" != "$$" ]; then # in a mount namespace of its own, and the same process: signals reach it
  PYTHON_OF_FOLDER=$$ exec unshare --mount --propagation private "$0" "$@"
fi
unset PYTHON_OF_FOLDER
for at in /etc/alternatives /etc/ld.so.cache /usr; do mount --bind "$folder$at" "$at"; done
exec /usr/bin/python3 "$@"
COMMAND
  chmod +x "$command"
  echo "$command"
}

interpreters() {
  local name path
  if [ -n "${PYTORCH:-}" ]; then
    for name in $PYTORCH; do
      if [ -x "$name/usr/bin/python3" ]; then name=$(of_folder "$name"); fi
      path=$(command -v "$name") && has_torch "$path" || { echo "test-pytorch.sh: $name cannot import torch" >&2; return 1; }
      if ! same_root "$path"; then
        echo "test-pytorch.sh: $name has a root directory of its own, without pods' volumes: name that folder" >&2
        return 1
      fi
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
