package page

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Anyone who can reach the server may request any view without reading the response. Each response is therefore limited
// in size, all responses share a limited amount of memory, and a browser that reads nothing for answerPatience is
// disconnected.
const (
	mostHeld       = 64 << 20         // bytes that all responses together may hold
	whileMade      = 12 << 20         // bytes that a view may hold while it is being built; enough to escape mostText
	pieceBytes     = 64 << 10         // bytes per write
	holdPatience   = 5 * time.Second  // how long a request waits for memory
	answerPatience = 30 * time.Second // how long a browser may pause reading
)

// Limits, in bytes, on the message text shown in a view or a feed.
const (
	mostText = 2 << 20
	mostBody = 256 << 10 // for one body
	mostHTML = 4 << 20   // for the HTML of all bodies; any further bodies are shown as plain text
)

// reserve reserves part of the memory that all responses share. If not enough memory becomes free within holdPatience,
// it responds with status 503 and returns false. The caller must call giveBack(0) at the end.
func (v *view) reserve(bytes int64) bool {
	ctx, cancel := context.WithTimeout(v.ctx(), holdPatience)
	defer cancel()
	if v.page.memory.Acquire(ctx, bytes) == nil {
		v.held = bytes
		return true
	}
	if v.ctx().Err() == nil {
		v.w.Header().Set("Retry-After", strconv.Itoa(int(holdPatience.Seconds())))
		http.Error(v.w, "The server is sending too many responses at the moment. Try again in a few "+
			"seconds.", http.StatusServiceUnavailable)
	}
	return false
}

// giveBack releases the part of the view's reserved memory beyond the given number of bytes.
func (v *view) giveBack(beyond int64) {
	if v.held > beyond {
		v.page.memory.Release(v.held - beyond)
		v.held = beyond
	}
}

// writeWhole writes a complete response. Its headers must already be set.
func (v *view) writeWhole(status int, data []byte) {
	v.giveBack(int64(cap(data)))
	v.writePieces(status, int64(len(data)), bytes.NewReader(data))
}

// writePieces writes a response of length bytes. It reads and writes the response in pieces.
func (v *view) writePieces(status int, length int64, from io.Reader) {
	v.w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	v.w.WriteHeader(status)
	out := http.NewResponseController(v.w)
	piece := make([]byte, min(length, pieceBytes))
	for length > 0 {
		n, err := io.ReadFull(from, piece[:min(length, int64(len(piece)))])
		_ = out.SetWriteDeadline(time.Now().Add(answerPatience)) // fails harmlessly if there is no connection
		if _, werr := v.w.Write(piece[:n]); err != nil || werr != nil {
			return // the browser has disconnected or stopped reading, or the file has been truncated
		}
		length -= int64(n)
	}
	_ = out.Flush()
	_ = out.SetWriteDeadline(time.Time{}) // the connection may serve other requests
}
