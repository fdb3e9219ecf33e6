package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push writes the image of all platforms to a registry and returns its name by digest, which is what a careful
// configuration refers to. Credentials are those of `docker login` or `podman login`.
func Push(ctx context.Context, tag name.Tag, index v1.ImageIndex) (name.Digest, error) {
	digest, err := index.Digest()
	if err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w", tag, err)
	}
	err = remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w; log in with: docker login %s", tag, err, tag.RegistryStr())
	}
	return tag.Digest(digest.String()), nil
}
