package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// office is a mailtree server with its own store, which contains the mailbox build.
type office struct {
	t   *testing.T
	dir string
	env []string
	cmd *exec.Cmd
}

// newOffice starts a mailtree server with additional settings.
func newOffice(t *testing.T, env ...string) *office {
	t.Helper()
	o := &office{t: t, dir: open(t)}
	o.env = append([]string{"HOME=" + o.dir, "MCP_MAIL_STORE=" + o.dir + "/store", "MAIL_DOMAIN=" + ours, "GIT_CONFIG_NOSYSTEM=1",
		"GATEWAY_LISTEN=lmtp+unix:" + o.socket(), "GATEWAY_POSTMASTER=build"}, env...)
	o.start()
	t.Cleanup(func() {
		o.kill()
		if log, err := os.ReadFile(filepath.Join(o.dir, "log")); err == nil && t.Failed() {
			t.Logf("%s", log[max(0, len(log)-4000):])
		}
	})
	if answer := o.call(t, "mailbox_create", `{"name":"build"}`); !strings.Contains(answer, "build@"+ours) {
		t.Fatal(answer)
	}
	return o
}

// command returns a command that runs mailtree with the office's settings.
func (o *office) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Getenv("MAILTREE_PEERS"), args...)
	c.Env, c.Dir = append(os.Environ(), o.env...), o.dir
	return c
}

// tools returns a command that serves the aimx toolset over stdio.
func (o *office) tools(ctx context.Context) *exec.Cmd {
	return o.command(ctx, "stdio", "--toolset", "aimx", "--no-start", "--project", "/work/shop")
}

// request returns the JSON-RPC message for a tool call.
func request(name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", name, args)
}

// call calls a tool and returns the response.
func (o *office) call(t *testing.T, name, args string) string {
	t.Helper()
	c := o.tools(t.Context())
	c.Stdin = strings.NewReader(request(name, args))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v %s", name, err, out)
	}
	return string(out)
}

func (o *office) socket() string { return filepath.Join(o.dir, "lmtp") }

// start starts the server and returns once the server accepts mail.
func (o *office) start() {
	o.t.Helper()
	log, err := os.OpenFile(filepath.Join(o.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		o.t.Fatal(err)
	}
	defer log.Close()
	o.cmd = o.command(context.Background(), "serve", "--port", "0")
	o.cmd.Stderr = log
	if err := o.cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	until(o.t, "the server", func() bool {
		c, err := net.Dial("unix", o.socket())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill kills the server without giving it a chance to clean up.
func (o *office) kill() {
	o.cmd.Process.Kill()
	o.cmd.Wait()
}

// files returns the store's files whose paths match.
func (o *office) files(t *testing.T, matches string) map[string][]byte {
	t.Helper()
	all, path := map[string][]byte{}, regexp.MustCompile(matches)
	err := filepath.WalkDir(filepath.Join(o.dir, "store", "projects"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.MatchString(p) {
			var data []byte
			if data, err = os.ReadFile(p); err == nil {
				all[p] = data
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // the server moved or removed the file after the folder was read
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// shown is the part of a message's header that the tests check.
type shown struct {
	ID, From, Subject, Auth string
	MessageID               string `json:"message_id"`
	Attachments             []struct {
		Path  string
		Bytes int64
	}
	repo string
}

// raw returns the email as it was received.
func (s *shown) raw() ([]byte, error) {
	last := s.Attachments[len(s.Attachments)-1]
	data, err := os.ReadFile(filepath.Join(s.repo, last.Path))
	if err == nil && int64(len(data)) != last.Bytes {
		err = fmt.Errorf("%s has %d bytes instead of %d", last.Path, len(data), last.Bytes)
	}
	return data, err
}

// box returns the messages in the given folder, inbox or outbox, of the mailbox build.
func (o *office) box(t *testing.T, name string) (all []shown) {
	t.Helper()
	for path, data := range o.files(t, "/agents/build/"+name+`/.*\.md$`) {
		repo, _, _ := strings.Cut(path, "/agents/")
		one := shown{repo: repo}
		header, _, _ := bytes.Cut(bytes.TrimPrefix(data, []byte("---json\n")), []byte("\n---\n"))
		if err := json.Unmarshal(header, &one); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, one)
	}
	return all
}
