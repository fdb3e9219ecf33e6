#!/usr/bin/env bash
# docs.sh: makes docs/ from the provider's schemas, templates/ and examples/.
# docs.sh --check: fails, with the difference, when docs/ is not what would be made.
# The glossary, docs/development and docs/images are not generated and stay as they are; the registry ignores them.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh tools/tfplugindocs tfplugindocs github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs

work=$(mktemp -d "${TMPDIR:-/tmp}/docs.XXXXXX")
trap 'rm -rf "$work"' EXIT
go -C e2e run ./cmd/providerschema >"$work/schema.json"
# The generator empties the directory that it writes to, which has to be below the provider's: it gets a copy of what it reads.
cp -r templates examples "$work"
if ! bin/tfplugindocs generate --provider-dir "$work" --provider-name elastic --providers-schema "$work/schema.json" >"$work/log" 2>&1; then
  cat "$work/log"
  exit 1
fi
cp -r docs/development docs/images docs/glossary.md "$work/docs"
if [ "${1-}" = --check ]; then
  diff -r docs "$work/docs" || { echo "docs/ is not what would be made of the schemas, templates/ and examples/; run: make docs"; exit 1; }
else
  rm -rf docs
  mv "$work/docs" docs
fi
