package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// mostByContent is the maximum total size, in bytes, of the attachments whose content one command sends to the server.
// The content is encoded as text, and must then fit in one request.
const mostByContent = 8 << 20

// filesToAttach returns the files as arguments for the send_message tool. Normally, the command reads the files and
// passes their content. Users can therefore attach any file that they can read, and the server never reads a file for a
// caller who may not read it. In three cases, the command passes only the path, and the server decides whether to read
// the file: if the file would exceed mostByContent, if the command runs in an agent's session, or if the message is not
// from the user's own agent. filesToAttach returns an error for a file that does not exist (exit status 3) or that
// cannot be read.
func (p *program) filesToAttach(d *deskWork, files []string) (all []string, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	session, err := p.agentsSession()
	if err != nil {
		return nil, err
	}
	byContent := session == "" && d.IsPerson
	left := int64(mostByContent)
	for _, name := range files {
		if strings.HasPrefix(name, "data:") {
			all = append(all, name)
			continue
		}
		at, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		data, err := readAttached(at, left)
		over := new(tree.SizeError)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, &exitError{exitNothing, fmt.Errorf("nothing was sent: the attachment %q does not exist", name)}
		case !byContent || errors.As(err, &over):
			all = append(all, at)
			continue
		case err != nil:
			return nil, fmt.Errorf("nothing was sent: the attachment %q cannot be read: %w", name, plainCause(err))
		}
		left -= int64(len(data))
		all = append(all, "data:;name="+url.PathEscape(filepath.Base(at))+";base64,"+base64.StdEncoding.EncodeToString(data))
	}
	return all, nil
}

// readAttached reads a regular file of at most the given size. It returns a *tree.SizeError for a larger file.
func readAttached(file string, limit int64) ([]byte, error) {
	switch fi, err := os.Stat(file); { // call Stat first, because opening a named pipe would block
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Size() > limit:
		return nil, &tree.SizeError{Size: fi.Size()}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit { // the file has grown since the check
		err = &tree.SizeError{Size: int64(len(data))}
	}
	return data, err
}

// plainCause returns err without the operation and the path that package os adds.
func plainCause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
