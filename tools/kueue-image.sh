#!/usr/bin/env bash
# kueue-image.sh FOLDER: a release of Kueue for machines that reach no registry, from its Go module at the version in
# simcluster/controllers/go.mod: manifests.yaml and kueue.tar, an image archive, as the project's Makefile and Dockerfile
# make them.
set -euo pipefail
cd "$(dirname "$0")/.."
module=simcluster/controllers
out=$1
mkdir -p "$out"

go -C "$module" mod download sigs.k8s.io/kueue
read -r version source < <(go -C "$module" list -m -f '{{.Version}} {{.Dir}}' sigs.k8s.io/kueue)
image=registry.k8s.io/kueue/kueue:$version
work=$(mktemp -d "${TMPDIR:-/tmp}/kueue-image.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A release differs from the module's manifests in the image that they name.
tools/build.sh tools kustomize sigs.k8s.io/kustomize/kustomize/v5
bin/kustomize build --load-restrictor LoadRestrictionsNone "$source/config/default" >"$work/manifests.yaml"
sed "s|us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue:main|$image|" "$work/manifests.yaml" >"$out/manifests.yaml"
if [ "$(grep -c "image: $image\$" "$out/manifests.yaml")" != 1 ]; then
  echo "kueue-image.sh: $source/config/default no longer names the image of the main branch once" >&2
  exit 1
fi

# The image: the program and an empty /tmp, like the distroless base of the project's, without its certificates.
tools/build.sh "$module" kueue-image/manager sigs.k8s.io/kueue/cmd/kueue -ldflags "-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=$version"
mkdir "$work/root" "$work/image"
install -m 755 bin/kueue-image/manager "$work/root/manager"
install -d -m 1777 "$work/root/tmp"
tar --create --owner=0 --group=0 --directory="$work/root" --file="$work/image/layer.tar" manager tmp
sum=$(sha256sum "$work/image/layer.tar" | cut -d' ' -f1)
printf '{"os": "linux", "architecture": "%s", "config": {"User": "65532:65532", "WorkingDir": "/", "Entrypoint": ["/manager"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:%s"]}}' \
  "$(go env GOARCH)" "$sum" >"$work/image/config.json"
printf '[{"Config": "config.json", "RepoTags": ["%s"], "Layers": ["layer.tar"]}]' "$image" >"$work/image/manifest.json"
tar --create --owner=0 --group=0 --directory="$work/image" --file="$out/kueue.tar" manifest.json config.json layer.tar
echo "$image: $out/kueue.tar and $out/manifests.yaml"
