#!/usr/bin/env bash
# build.sh MODULE NAME PACKAGE [GO BUILD FLAGS]: builds PACKAGE of the module in folder MODULE into bin/NAME.
#
# Silent while nothing needs compiling. A cold build of the Kubernetes control plane takes minutes, so within every ten
# seconds a line says how far it is: `go build -v` names each package that it compiles.
set -euo pipefail
cd "$(dirname "$0")/.."
module=$1 name=$2 package=$3
shift 3

out=$PWD/bin/$name
mkdir -p "$(dirname "$out")"
began=$SECONDS
seconds_between_lines=8 # with the second that a read may take, and those that SECONDS leaves out, less than ten

fifo=$(mktemp -u "${TMPDIR:-/tmp}/build.XXXXXX")
mkfifo "$fifo"
trap 'rm -f "$fifo"' EXIT

# Listing first brings the modules here, and tells how many packages there are.
count=$(mktemp "${TMPDIR:-/tmp}/build.XXXXXX")
trap 'rm -f "$fifo" "$count"' EXIT
{
  status=0
  go -C "$module" list -deps "$@" "$package" >"$count" && go -C "$module" build -v -o "$out" "$@" "$package" || status=$?
  exit $status
} 2>"$fifo" &
build=$!

downloaded=0 compiled=0 reported=$SECONDS
report() {
  if [ $((SECONDS - reported)) -lt $seconds_between_lines ]; then return; fi
  reported=$SECONDS
  if [ -s "$count" ] && [ $compiled -eq 0 ]; then
    echo "  bin/$name: $(wc -l <"$count") packages, none compiled yet: Go looks at what is there, or links, $((SECONDS - began)) s"
  elif [ -s "$count" ]; then
    echo "  bin/$name: $compiled packages compiled of at most $(wc -l <"$count"), $((SECONDS - began)) s"
  else
    echo "  bin/$name: $downloaded modules downloaded, $((SECONDS - began)) s"
  fi
}
exec 3<"$fifo"
while true; do
  if IFS= read -r -t 1 line <&3; then
    case "$line" in
    "go: downloading "*) downloaded=$((downloaded + 1)) ;;
    *[[:space:]:]*) echo "$line" >&2 ;; # an error or a warning: package paths hold neither blanks nor colons
    *) compiled=$((compiled + 1)) ;;
    esac
  elif [ $? -le 128 ]; then
    break # end of file: go has ended
  fi
  report
done
wait "$build" || {
  status=$?
  echo "bin/$name: the build failed; what go said is above" >&2
  exit $status
}
if [ $compiled -gt 0 ] || [ $((SECONDS - began)) -ge $seconds_between_lines ]; then
  echo "  bin/$name: built, $compiled packages compiled, $((SECONDS - began)) s"
fi
