package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// SourceOf describes the repository in root as the source of a version. Revision and time are the commit's: they stay
// out where there is no git repository, and the revision also where the work tree differs from the commit.
// $SOURCE_DATE_EPOCH, seconds since 1970, takes the place of the commit's time
// (https://reproducible-builds.org/specs/source-date-epoch).
func SourceOf(ctx context.Context, root, version string) (Source, error) {
	s := Source{Version: version}
	commit, seconds, _ := strings.Cut(git(ctx, root, "log", "-1", "--format=%H %ct"), " ")
	if commit != "" && git(ctx, root, "status", "--porcelain") == "" {
		s.Revision = commit
	}
	source := "the commit's time"
	if value := os.Getenv("SOURCE_DATE_EPOCH"); value != "" {
		source, seconds = "$SOURCE_DATE_EPOCH", value
	}
	if seconds == "" {
		return s, nil
	}
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil || epoch < 0 {
		return Source{}, fmt.Errorf("%s is %q: write seconds since 1970", source, seconds)
	}
	s.Created = time.Unix(epoch, 0).UTC()
	return s, nil
}

// git is what a git command prints, or "" where git or the repository is not there.
func git(ctx context.Context, root string, arguments ...string) string {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, arguments...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
