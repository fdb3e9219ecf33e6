package forecast

// Separately returns the answers of All, each from an exploration of its own.
func Separately(s *Snapshot, jobs []Job) []Answer {
	var answers []Answer
	for number := range jobs {
		answers = append(answers, of(s, jobs, number))
	}
	return answers
}
