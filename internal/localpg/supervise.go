package localpg

import (
	"context"
	"time"
)

const (
	superviseInterval = time.Second
	maxRestartDelay   = 30 * time.Second
	trimInterval      = time.Minute
)

// supervise brings the server back when it ends (killed for memory, stopped by
// hand) and keeps its log bounded, until ctx ends.
func (s *Server) supervise(ctx context.Context) {
	look, trimming := time.NewTicker(superviseInterval), time.NewTicker(trimInterval)
	defer look.Stop()
	defer trimming.Stop()
	delay := superviseInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-trimming.C:
			_ = trim(s.lay.log, maxLog) // tried again in a minute
		case <-look.C:
			if s.process().alive() {
				continue
			}
			delay = s.revive(ctx, delay)
			look.Reset(delay)
		}
	}
}

// revive starts the server again, or adopts one that someone else started
// meanwhile, and returns when to look next.
func (s *Server) revive(ctx context.Context, delay time.Duration) time.Duration {
	s.log.Warn("database ended, starting it again", "data", s.lay.data)
	p, err := s.bringUp(ctx)
	if err != nil {
		s.log.Error("database not started", "error", err, "again_in", delay)
		return min(2*delay, maxRestartDelay)
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	return superviseInterval
}
