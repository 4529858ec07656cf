package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// sshd is a script's ssh server. The script's ssh configuration calls it mail.example.
type sshd struct{ cmd *exec.Cmd }

type sshdKey struct{}

// canSSHD reports whether an ssh server can be started. As root, sshd needs the folder that the system's own sshd
// creates.
func canSSHD() bool {
	_, err := exec.LookPath("sshd")
	if err == nil && os.Geteuid() == 0 {
		_, err = os.Stat("/run/sshd")
	}
	return err == nil
}

// cmdSSHD implements `sshd start|stop`. It starts or stops an ssh server for the test's OS user. The folder ssh
// contains the server's files and the OS user's ssh configuration. The file authorized_keys contains the key that the
// OS user's Git presents. A script that uses the command needs [!sshd] skip.
func cmdSSHD(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(sshdKey{}).(*sshd)
	if args[0] == "stop" {
		s.stop()
		return
	}
	dir := ts.MkAbs("ssh")
	if _, err := os.Stat(dir); err != nil {
		ts.Check(setupSSH(dir, ts.Getenv("HOME")))
	}
	address, err := os.ReadFile(filepath.Join(dir, "address"))
	ts.Check(err)
	exe, err := exec.LookPath("sshd")
	ts.Check(err)
	exe, err = filepath.Abs(exe) // sshd executes itself again for each connection
	ts.Check(err)
	s.cmd = exec.Command(exe, "-D", "-E", filepath.Join(dir, "log"), "-f", filepath.Join(dir, "sshd_config"))
	ts.Check(s.cmd.Start())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("tcp", string(address)); err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the ssh server does not listen: %s", ts.ReadFile(filepath.Join(dir, "log")))
		}
	}
}

func (s *sshd) stop() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// setupSSH creates keys and configurations for both ends.
func setupSSH(dir, home string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := ln.Addr().(*net.TCPAddr)
	ln.Close()
	me, err := user.Current()
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	host, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"address": address.String(),
		"sshd_config": "ListenAddress " + address.String() + "\nHostKey DIR/host\nAuthorizedKeysFile DIR/authorized_keys\nPidFile none\n" +
			"UsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n",
		"config": fmt.Sprintf("Host mail.example\nHostName 127.0.0.1\nPort %d\nUser %s\nHostKeyAlias mail.example\nIdentityFile DIR/user\n"+
			"IdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile DIR/known_hosts\nStrictHostKeyChecking yes\nBatchMode yes\n", address.Port, me.Username),
		"known_hosts":        "mail.example " + string(host),
		home + "/.gitconfig": "[core]\n\tsshCommand = ssh -F 'DIR/config'\n",
	} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			return err
		}
	}
	return os.Link(filepath.Join(dir, "user.pub"), filepath.Join(dir, "authorized_keys"))
}
