package in

import (
	"bytes"
	"io"
	"net"
	"time"

	"github.com/emersion/go-smtp"
)

// errLineEnd is the reply to a message or session that contains a bare CR, a bare LF or a NUL. Mail servers disagree
// about whether such a character ends a line, and thus about where a message ends. As a result, one server may see a
// second message where another server sees only text.
var errLineEnd = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 6, 0},
	Message: "Bare CR, bare LF and NUL are not allowed: end lines with CRLF"}

// lines checks a stream of bytes for the characters that errLineEnd describes.
type lines struct{ last byte }

// scan checks the next bytes of the stream.
func (l *lines) scan(p []byte) error {
	for _, c := range p {
		if c == 0 || (l.last == '\r') != (c == '\n') {
			return errLineEnd
		}
		l.last = c
	}
	return nil
}

// strictReader reads a message and checks its line endings. Unlike strictConn, it also checks messages sent over TLS.
type strictReader struct {
	r io.Reader
	lines
}

// Read implements io.Reader. It returns errLineEnd if the message contains an invalid line ending.
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

// strictConn is a connection that closes itself if the client sends an invalid line ending (see errLineEnd), even in a
// command. It stops checking once the server has announced the start of TLS.
type strictConn struct {
	net.Conn
	lines

	replies int  // number of 220 replies; the first is the greeting, and the second starts TLS
	passes  bool // whether TLS has started
	refused bool
	leave   func()
	end     *time.Timer

	begun bool      // whether the client's first line has arrived
	first time.Time // deadline for the first line
}

// SetReadDeadline implements net.Conn. Until the first line has arrived, the deadline is at most the deadline for
// that line.
func (c *strictConn) SetReadDeadline(t time.Time) error {
	if !c.begun && (t.IsZero() || t.After(c.first)) {
		t = c.first
	}
	return c.Conn.SetReadDeadline(t)
}

// Read implements net.Conn.
func (c *strictConn) Read(p []byte) (int, error) {
	if c.refused {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(p)
	c.begun = c.begun || bytes.IndexByte(p[:n], '\n') >= 0
	if !c.passes && c.scan(p[:n]) != nil {
		c.refused = true
		c.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		io.WriteString(c.Conn, "550 5.6.0 "+errLineEnd.Message+"\r\n")
		c.Close()
		return 0, io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *strictConn) Write(p []byte) (int, error) {
	if !c.passes && bytes.HasPrefix(p, []byte("220 ")) {
		c.replies++
		c.passes = c.replies > 1
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *strictConn) Close() error {
	c.end.Stop()
	c.leave()
	return c.Conn.Close()
}
