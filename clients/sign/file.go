package sign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"mailtree/maildir/seat"
)

// These are limits in bytes.
const (
	maxStatus = 64 << 10 // a longer status file is ignored
	maxLine   = 1 << 20  // a longer line of a transcript is ignored
	maxLook   = 8 << 20  // if the transcript has grown by more than this, only the last maxLine bytes are read
)

// Follower reads a session's state from the session's files. Its fields are exported so that another process can
// continue where this one has stopped.
type Follower struct {
	Client string `json:"client"`
	ID     string `json:"id"`
	File   string `json:"file"`
	At     int64  `json:"at"`   // the offset up to which the transcript has been read
	Cut    bool   `json:"cut"`  // At is inside a line that was too long to read
	Last   string `json:"last"` // the string that statusIs returned last
}

// Follow returns a follower that reports the states that appear in the session's files from now on. If the client has
// no such file, ok is false.
func Follow(s Session) (f Follower, ok bool) {
	c, known := clients[s.Client]
	f = Follower{Client: s.Client, ID: s.ID}
	switch {
	case !known:
		return f, false
	case c.status != nil:
		f.File = c.status(s)
		return f, f.File != ""
	}
	if f.File = c.transcript(s); f.File == "" {
		return f, false
	}
	if file, err := open(f.File); err == nil {
		defer file.Close()
		if info, err := file.Stat(); err == nil {
			f.At = info.Size()
		}
	}
	return f, true
}

// Next returns the last state that has appeared in the session's files since the previous call, or "" if there is none.
// It ignores a file that is missing, cannot be read, or is not a regular file of this OS user.
func (f *Follower) Next() (is seat.State) {
	file, err := open(f.File)
	if err != nil {
		return ""
	}
	defer file.Close()
	c := clients[f.Client]
	if c.status != nil {
		data, err := io.ReadAll(io.LimitReader(file, maxStatus+1))
		if err != nil || len(data) > maxStatus {
			return ""
		}
		is, said := c.statusIs(data, f.ID)
		if said == f.Last {
			return ""
		}
		f.Last = said
		return is
	}
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	f.skip(info.Size())
	for f.At < info.Size() {
		lines, more := f.read(file, info.Size())
		for line := range bytes.Lines(lines) {
			if says := c.line(line); says != "" {
				is = says
			}
		}
		if !more {
			break
		}
	}
	return is
}

// Ended reports whether the session's files show that its last turn has ended. This is needed for clients that still
// report events of a turn after the user has interrupted the turn. For other clients, Ended returns false. It reads
// only the last maxLine bytes.
func Ended(s Session) (ended bool) {
	c := clients[s.Client]
	if c.prompt == nil {
		return false
	}
	file, err := open(c.transcript(s))
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false
	}
	from := max(info.Size()-maxLine, 0)
	tail, err := io.ReadAll(io.NewSectionReader(file, from, maxLine))
	if err != nil {
		return false
	}
	if from > 0 {
		_, tail, _ = bytes.Cut(tail, []byte("\n"))
	}
	for line := range bytes.Lines(tail) {
		ended = c.line(line) == seat.Idles || ended && !c.prompt(line)
	}
	return ended
}

// skip adjusts the offset if the transcript has become shorter, or has grown by more than maxLook.
func (f *Follower) skip(size int64) {
	switch {
	case size < f.At:
		f.At, f.Cut = size, false
	case size-f.At > maxLook:
		f.At, f.Cut = size-maxLine, true
	}
}

// read returns the next complete lines of the transcript, which has the given size. It leaves an incomplete last line
// for the next call. At the end of the transcript, more is false.
func (f *Follower) read(file *os.File, size int64) (lines []byte, more bool) {
	data := make([]byte, min(maxLine, size-f.At)) // usually empty, because the transcript is read twice a second
	n, err := file.ReadAt(data, f.At)
	data = data[:n]
	end := bytes.LastIndexByte(data, '\n') + 1
	if full := n == maxLine; end == 0 && full {
		f.At, f.Cut = f.At+int64(n), true
		return nil, err == nil
	}
	f.At += int64(end)
	lines = data[:end]
	if f.Cut && end > 0 {
		lines = lines[bytes.IndexByte(lines, '\n')+1:]
		f.Cut = false
	}
	return lines, err == nil && end > 0
}

// open opens a regular file that belongs to this process's OS user. It does not follow a link at the end of the path.
// It never opens a pipe or a device, so it never blocks.
func open(path string) (*os.File, error) {
	info, err := os.Lstat(path) // check first, because merely opening a device may have an effect
	if err == nil && !own(info) {
		err = errNotOwn
	}
	if err != nil {
		return nil, fmt.Errorf("a client's file: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a client's file: %w", err)
	}
	if info, err = file.Stat(); err == nil && !own(info) {
		err = errNotOwn
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("a client's file: %w", err)
	}
	return file, nil
}

var errNotOwn = errors.New("not a regular file owned by this user")

func own(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && int(stat.Uid) == os.Geteuid()
}
