package trainingjob

// The limits of a job's numbers, in its spec, in HCL and on command lines. All are above what has a use, and so far
// below what overflows that the number of steps, and any product of two of them with the number of records, fits an
// int64.
const (
	MaxEpochs         = 1_000_000
	MaxMinibatchSize  = 1_000_000
	MaxGradsToWait    = 100_000
	MaxRecordsPerTask = 1_000_000_000
	MaxWorkers        = 99_999 // the numbers of pods have five digits, see MaxNameLength
	MaxSteps          = 1_000_000_000_000_000
	MaxKeep           = 1_000_000
	MaxProcesses      = 1_024 // of a command on one worker

	MaxRestartIntervalSeconds = 7 * 24 * 60 * 60
)

// DefaultGradsToWait is ElasticDL's default, in HCL and on the command line.
const DefaultGradsToWait = 1

// between adds a problem unless n is in [least, most].
func (p *problems) between(field string, n, least, most int64) {
	switch {
	case n < least:
		p.add(field, "is %d; it must be at least %d", n, least)
	case n > most:
		p.add(field, "is %d; it must be at most %d", n, most)
	}
}
