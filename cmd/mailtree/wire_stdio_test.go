package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// stdioWire is the bridge that clients start. It carries one message per line on standard input and output.
type stdioWire struct{}

func (stdioWire) dial(d *daemon, toolset string, who caller) (peer, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{"mailtree", "stdio", "--no-start", "--toolset", toolset, "--as", who.name, "--project", who.project}
	cmd.Dir, cmd.Env = "/", []string{"MCP_MAIL_STORE=" + d.store, "HOME=" + filepath.Dir(d.store)}
	p := &stdioPeer{cmd: cmd}
	cmd.Stderr = &p.said
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, cmd.Start()
}

type stdioPeer struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer
}

// exchange sends a message and returns the response. It skips the server's notifications.
func (p *stdioPeer) exchange(message []byte) ([]byte, error) {
	var asked, told struct{ ID json.RawMessage }
	if err := json.Unmarshal(message, &asked); err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(p.in, "%s\n", message); err != nil || asked.ID == nil {
		return nil, err
	}
	for {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(line, &told); err != nil || bytes.Equal(asked.ID, told.ID) {
			return bytes.TrimSpace(line), err
		}
	}
}

func (p *stdioPeer) close() error {
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, &p.said)
	}
	return nil
}
