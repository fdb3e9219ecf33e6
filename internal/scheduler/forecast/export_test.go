package forecast

import "context"

// Separately returns the answers of All, each from an exploration of its own.
func Separately(ctx context.Context, s *Snapshot, jobs []Job) []Answer {
	var separate []Answer
	for number := range jobs {
		separate = append(separate, answers(ctx, s, jobs, number)...)
	}
	return separate
}
