package main

import "testing"

func TestAfterAKillStepsThatWereDoneBeforeAreComputedAgain(t *testing.T) {
	done := []doneStep{{number: 7, at: 1}, {number: 8, at: 2}, {number: 7, at: 5}, {number: 8, at: 6}, {number: 9, at: 7.5}, {number: 10, at: 8}}
	if seconds, again := afterKill(done, 3); seconds != 4.5 || again != 2 {
		t.Errorf("%v s, %d steps again", seconds, again)
	}
}

func TestAStepOfOneRankIsNoneOfTwo(t *testing.T) {
	done := []doneStep{{number: 3, at: 1}, {number: 4, at: 9}, {number: 4, rank: 1, at: 9}, {number: 5, at: 10}, {number: 5, rank: 1, at: 10}}
	if gap := medianGap(done); gap != 1 {
		t.Errorf("%v s", gap)
	}
}

func TestAJoinCostsWhatItsStepLastsLonger(t *testing.T) {
	var done []doneStep
	for i, at := range []float64{1, 2, 3, 4, 5, 6, 11, 12} {
		done = append(done, doneStep{number: i, at: at})
		if i != 5 {
			done = append(done, doneStep{number: i, rank: 1, at: at})
		}
	}
	if seconds, joined := costOfJoin(done); seconds != 4 || !joined {
		t.Errorf("%v s, %v", seconds, joined)
	}
	if _, joined := costOfJoin(done[:11]); joined {
		t.Error("a rank that does not come has joined")
	}
}
