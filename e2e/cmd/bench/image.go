package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/elastic-training/terraform-provider-elastic/e2e/image"
)

// sizeGoal is the largest image, in bytes, packed or not.
const sizeGoal = 25e6

// measureImage reports the trainer image's size on every platform, and times a job of one step in a container of it.
func measureImage(ctx context.Context, o options) ([]figure, error) {
	source := image.Source{Version: "bench"}
	images := make(map[string]v1.Image)
	var figures []figure
	for _, architecture := range image.Architectures() {
		binary, err := image.Compile(ctx, o.root, source, architecture)
		if err != nil {
			return nil, err
		}
		built, err := image.Trainer(source, architecture, binary)
		if err != nil {
			return nil, err
		}
		size, err := image.SizeOf(built)
		if err != nil {
			return nil, err
		}
		figures = append(
			figures,
			ratios("image to download, linux/"+architecture, "< 1", fmt.Sprintf("%.0f MB; %.1f MB", sizeGoal/1e6, float64(size.Compressed)/1e6), []float64{float64(size.Compressed) / sizeGoal}),
			ratios("image unpacked, linux/"+architecture, "< 1", fmt.Sprintf("%.0f MB; %.1f MB", sizeGoal/1e6, float64(size.Unpacked)/1e6), []float64{float64(size.Unpacked) / sizeGoal}),
		)
		images[architecture] = built
	}
	start, err := measureContainer(ctx, o, images)
	return append(figures, start...), err
}

// measureContainer times containers that the engine starts: from the moment at which the engine has started the
// supervisor's process to the first step, as measureStart does without a container, and from the command that starts
// them, which is mostly the engine's own work.
func measureContainer(ctx context.Context, o options, images map[string]v1.Image) (_ []figure, err error) {
	engine, err := image.FindEngine(ctx)
	if errors.Is(err, image.ErrNoEngine) {
		return nil, errSkipped{"start in a container: " + err.Error()}
	}
	if err != nil {
		return nil, err
	}
	built, ok := images[engine.Architecture]
	if !ok {
		return nil, errSkipped{"start in a container: there is no image for " + engine.String()}
	}
	tag, err := name.NewTag(fmt.Sprintf("elastic.test/bench:%d", os.Getpid()))
	if err != nil {
		return nil, err
	}
	if err := engine.Load(ctx, tag, built); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Untag(context.WithoutCancel(ctx), tag)) }()
	model, err := os.ReadFile(o.model())
	if err != nil {
		return nil, err
	}
	var process, command, processSeconds, commandSeconds []float64
	for range 4 * o.rounds {
		fromProcess, fromCommand, err := startContainer(ctx, engine, tag, model)
		if err != nil {
			return nil, err
		}
		processSeconds, commandSeconds = append(processSeconds, fromProcess.Seconds()), append(commandSeconds, fromCommand.Seconds())
		process, command = append(process, fromProcess.Seconds()/startGoal.Seconds()), append(command, fromCommand.Seconds()/startGoal.Seconds())
	}
	of := func(seconds []float64) string {
		return fmt.Sprintf("%v; median %.0f ms, %s", startGoal, 1000*medianOf(seconds), engine)
	}
	return []figure{
		ratios("process start in a container to first step", "≤ 1", of(processSeconds), process),
		ratios("command to start a container to first step", "", of(commandSeconds), command),
	}, nil
}

// startContainer runs a job of one step in a new container.
func startContainer(ctx context.Context, engine image.Engine, tag name.Tag, model []byte) (fromProcess, fromCommand time.Duration, err error) {
	container, err := engine.Create(ctx, tag, "train", "--model-file", path.Join(image.Output, "model.py"), "--train-data-dir", "synthetic://digits?records=20&seed=1",
		"--output", path.Join(image.Output, "model"), "--num-worker", "1", "--grads-to-wait", "2", "--log-level", "debug")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, container.Remove(context.WithoutCancel(ctx))) }()
	if err := container.Put(ctx, "model.py", model); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	published, err := firstStep(container.Start(ctx))
	if err != nil {
		return 0, 0, err
	}
	started, err := container.StartedAt(ctx)
	if err != nil {
		return 0, 0, err
	}
	return published.Sub(started), published.Sub(began), nil
}
