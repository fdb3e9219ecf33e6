package forecast

// Separately returns the answers of All, each from an exploration of its own.
func Separately(s *Snapshot, jobs []Job) []Answer {
	var separate []Answer
	for number := range jobs {
		separate = append(separate, answers(s, jobs, number)...)
	}
	return separate
}
