package engine

import "time"

// charge divides the time of a step among those it ran for, by their tokens.
func (e *Engine) charge(took time.Duration) {
	total := 0
	for _, p := range e.loop.parts {
		total += p.rows + p.drafted
	}
	for _, p := range e.loop.parts {
		share := took * time.Duration(p.rows+p.drafted) / time.Duration(total)
		if p.times.FirstToken.IsZero() {
			p.prefill += share
		} else {
			p.decode += share
		}
	}
}
