package budget_test

import (
	"fmt"

	"ragd/prompt/budget"
)

func ExamplePack() {
	plan, err := budget.Pack(budget.Input{
		Fixed:      budget.Fixed{Template: 20, System: 10, Question: 10},
		Candidates: []budget.Candidate{{ChunkID: 7, Tokens: 60}, {ChunkID: 8, Tokens: 90}, {ChunkID: 9, Tokens: 40}},
		Limits:     budget.Limits{Window: 200, AnswerTokens: 50},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range plan.Kept {
		fmt.Println("keep", k.ChunkID, k.Tokens)
	}
	for _, d := range plan.Dropped {
		fmt.Println("drop", d.ChunkID, d.Tokens, d.Reason)
	}
	fmt.Println("input", plan.Ledger.Input(), "of", plan.Ledger.Window-plan.Ledger.AnswerReserved)
	// Output:
	// keep 9 40
	// keep 7 60
	// drop 8 90 over_budget
	// input 140 of 150
}
