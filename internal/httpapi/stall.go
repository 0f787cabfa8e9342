package httpapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// defaultStall is what Config.Stall is when it is zero.
const defaultStall = time.Minute

// hold ends requests whose client neither goes on nor goes away: a body that does not
// come, an answer that is not read. Else each of them would keep its place within its
// key's limits, an ingest its lock, and a shutdown its time. The time of the request
// itself is not bounded here: it may wait in the queue for long.
func (s *server) hold(c *gin.Context) {
	stall := cmp.Or(s.cfg.Stall, defaultStall)
	w := &patientWriter{c.Writer, http.NewResponseController(c.Writer), stall}
	c.Writer = w
	w.wait()
	if c.Request.ContentLength != 0 {
		// Where deadlines cannot be set, as in tests without a connection, there is none.
		_ = w.control.SetReadDeadline(time.Now().Add(stall))
	}
	c.Next()
	// What is still to be flushed comes behind the rest of a body that nobody read.
	_ = w.control.SetWriteDeadline(time.Now().Add(2 * stall))
}

// arrived takes the time limit off a body that is there. One that is not keeps it: the
// server would go on waiting for its rest.
func arrived(c *gin.Context) {
	if w, ok := c.Writer.(*patientWriter); ok {
		_ = w.control.SetReadDeadline(time.Time{})
	}
}

// patientWriter gives the client a time for every piece of an answer. When it is over
// the write fails and net/http ends the request's context.
type patientWriter struct {
	gin.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
}

// piece is how much has to be taken within the time.
const piece = 64 << 10

func (w *patientWriter) wait() { _ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) }

func (w *patientWriter) Write(data []byte) (n int, err error) {
	for err == nil && n < len(data) {
		w.wait()
		var m int
		m, err = w.ResponseWriter.Write(data[n:min(n+piece, len(data))])
		n += m
	}
	return n, err
}

func (w *patientWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w *patientWriter) Flush() {
	w.wait()
	w.ResponseWriter.Flush()
}
