package page

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Whoever reaches the server may ask for any view, and need not read what comes. So an answer has a
// bound, all answers together hold a bounded amount of memory, and a browser that takes nothing for
// answerPatience loses its connection.
const (
	mostHeld       = 64 << 20         // bytes that all answers hold together
	whileMade      = 12 << 20         // bytes that a view may take while it is made: mostText, escaped
	pieceBytes     = 64 << 10         // bytes that are written at once
	holdPatience   = 5 * time.Second  // how long a request waits for memory
	answerPatience = 30 * time.Second // how long a browser may take nothing
)

// How much of the text of messages a view or a feed shows.
const (
	mostText = 2 << 20
	mostBody = 256 << 10 // of one body
)

// reserve takes so many bytes of the memory for answers. It reports false, and has answered 503, where
// there are not enough in time. The caller calls giveBack(0) in the end.
func (v *view) reserve(bytes int64) bool {
	ctx, cancel := context.WithTimeout(v.ctx(), holdPatience)
	defer cancel()
	if v.page.memory.Acquire(ctx, bytes) == nil {
		v.held = bytes
		return true
	}
	if v.ctx().Err() == nil {
		v.w.Header().Set("Retry-After", strconv.Itoa(int(holdPatience.Seconds())))
		http.Error(v.w, "The page is busy: too many answers of it are being read at once. Try again in a moment.", http.StatusServiceUnavailable)
	}
	return false
}

// giveBack returns what the view holds beyond some bytes.
func (v *view) giveBack(beyond int64) {
	if v.held > beyond {
		v.page.memory.Release(v.held - beyond)
		v.held = beyond
	}
}

// writeWhole writes a whole answer of which the header is set.
func (v *view) writeWhole(status int, data []byte) {
	v.giveBack(int64(cap(data)))
	v.writePieces(status, int64(len(data)), bytes.NewReader(data))
}

// writePieces writes an answer of length bytes, read from a source, in pieces.
func (v *view) writePieces(status int, length int64, from io.Reader) {
	v.w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	v.w.WriteHeader(status)
	out := http.NewResponseController(v.w)
	piece := make([]byte, min(length, pieceBytes))
	for length > 0 {
		n, err := io.ReadFull(from, piece[:min(length, int64(len(piece)))])
		_ = out.SetWriteDeadline(time.Now().Add(answerPatience)) // where there is a connection
		if _, werr := v.w.Write(piece[:n]); err != nil || werr != nil {
			return // the browser is gone, or reads nothing; or the file is shorter by now
		}
		length -= int64(n)
	}
	_ = out.Flush()
	_ = out.SetWriteDeadline(time.Time{}) // the connection may serve others next
}
