package in

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

// errLineEnd refuses a message, or a session, with a CR or LF that stands alone or with a NUL. Mail
// servers disagree about where a line with such an end ends, and so about where a message does: what
// one of them takes for a text is a second message for another one.
var errLineEnd = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 6, 0},
	Message: "A CR or LF alone, or a NUL, is not allowed: end lines with CR LF"}

// lines looks at a stream of bytes for what errLineEnd refuses.
type lines struct{ last byte }

// scan looks at the next bytes.
func (l *lines) scan(p []byte) error {
	for _, c := range p {
		if c == 0 || (l.last == '\r') != (c == '\n') {
			return errLineEnd
		}
		l.last = c
	}
	return nil
}

// strictReader reads a message. It sees it also where TLS hides it from strictConn.
type strictReader struct {
	r io.Reader
	lines
}

// Read is as of io.Reader. The error is errLineEnd for a message that has it.
func (s *strictReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if bad := s.scan(p[:n]); bad != nil {
		return 0, bad
	}
	if err == io.EOF && s.last == '\r' {
		err = errLineEnd
	}
	return n, err
}

// strictConn is a connection that ends where it has what errLineEnd refuses, in commands too. It
// looks no more once the server has said that TLS begins.
type strictConn struct {
	net.Conn
	lines

	replies int  // 220 replies: the first is the greeting, the second begins TLS
	passes  bool // TLS has begun
	refused bool
	leave   func()
	end     *time.Timer
}

// Read is as of net.Conn.
func (c *strictConn) Read(p []byte) (int, error) {
	if c.refused {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	if !c.passes && c.scan(p[:n]) != nil {
		c.refused = true
		c.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		io.WriteString(c.Conn, "550 5.6.0 "+errLineEnd.Message+"\r\n")
		c.Close()
		return 0, io.EOF
	}
	return n, err
}

// Write is as of net.Conn.
func (c *strictConn) Write(p []byte) (int, error) {
	if !c.passes && bytes.HasPrefix(p, []byte("220 ")) {
		c.replies++
		c.passes = c.replies > 1
	}
	return c.Conn.Write(p)
}

// Close is as of net.Conn.
func (c *strictConn) Close() error {
	c.end.Stop()
	c.leave()
	return c.Conn.Close()
}
