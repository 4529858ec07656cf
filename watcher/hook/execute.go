package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"

	"mailtree/maildir/hook"
	"mailtree/maildir/tree"
)

const (
	killAfter  = 5         // seconds between TERM and KILL at a timeout
	stopAfter  = 3         // seconds between TERM and KILL when the server stops
	leaveAfter = 2         // seconds that output may stay open after the command has ended
	maxOutput  = 64 << 10  // number of bytes to keep from the end of the output
	maxFact    = 100 << 10 // maximum bytes of one variable; the system's limit is 128 KiB
)

// Outcomes of a command that the server ended.
const (
	timedOut      = "timeout"
	serverStopped = "the server stopped"
)

// execute runs the command and waits for it to end.
func (r *Runner) execute(ctx context.Context, run *hook.Run) hook.End {
	out := &tail{}
	end := hook.End{Exit: -1}
	cmd, err := r.start(ctx, run, out)
	if err != nil {
		end.Why = "cannot start the command: " + err.Error()
		return end
	}
	began := time.Now()
	is, err := identity(cmd.Process.Pid)
	if err == nil {
		err = r.log.Started(run, cmd.Process.Pid, is)
	}
	if err != nil {
		r.cfg.Log.Warn("cannot record a hook's process; if this server crashes, the next server "+
			"will not know about the process", "error", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timeout := time.NewTimer(time.Duration(run.Hook.Timeout) * r.cfg.Second)
	defer timeout.Stop()
	waited := true
	select {
	case err = <-ended:
	case <-timeout.C:
		end.Why = timedOut
		waited, err = r.stop(cmd.Process.Pid, ended, killAfter)
	case <-ctx.Done():
		end.Why = serverStopped
		waited, err = r.stop(cmd.Process.Pid, ended, stopAfter)
	}
	end.Took = time.Since(began)
	if !waited {
		end.Why += ", and the hook could not be stopped"
		return end
	}
	end.Output = out.bytes()
	if cmd.ProcessState != nil {
		end.Exit = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	switch {
	case end.Why != "" || err == nil || errors.Is(err, exec.ErrWaitDelay): // ErrWaitDelay means that a child is still running
	case !errors.As(err, &exit):
		end.Why = err.Error()
	case end.Exit < 0:
		end.Why = exit.Error()
	}
	return end
}

// start starts the command. If the machine lacks resources, start retries for up to the command's timeout. It must
// retry, because the run is already marked as begun, so no later server would start the command.
func (r *Runner) start(ctx context.Context, run *hook.Run, out io.Writer) (*exec.Cmd, error) {
	giveUp := time.NewTimer(time.Duration(run.Hook.Timeout) * r.cfg.Second)
	defer giveUp.Stop()
	for said := false; ; said = true {
		as, err := accountOf(run.Owner)
		if err == nil {
			cmd := &exec.Cmd{
				Path:        run.Hook.Cmd[0],
				Args:        run.Hook.Cmd,
				Dir:         as.dir(),
				Env:         append(as.env(), facts(run)...),
				Stdin:       bytes.NewReader(run.Data),
				Stdout:      out,
				Stderr:      out,
				WaitDelay:   leaveAfter * r.cfg.Second,
				SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()},
			}
			if err = cmd.Start(); err == nil {
				return cmd, nil
			}
		}
		if !passing(err) {
			return nil, err
		}
		if !said {
			r.cfg.Log.Warn("cannot start a hook right now; will retry", "hook", run.Hook.Name, "mailbox", run.Hook.Mailbox, "error", err)
		}
		select {
		case <-time.After(r.cfg.Second / 4):
		case <-giveUp.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

// passing reports whether err, from starting a command, is caused by a temporary condition of the machine. Other
// errors are caused by the command itself, for example because it is not a program or has too many arguments.
func passing(err error) bool {
	return tree.FaultOf(err) == tree.FaultMachine && !errors.Is(err, syscall.ENOEXEC) && !errors.Is(err, syscall.E2BIG)
}

// stop sends TERM to a process group. If the group has not ended after the given time, stop sends KILL. It returns the
// result of Wait for the group's leader. If even KILL did not end the leader, waited is false. This can happen if the
// command has switched to another user or left its group.
func (r *Runner) stop(group int, ended <-chan error, after time.Duration) (waited bool, err error) {
	syscall.Kill(-group, syscall.SIGTERM)
	kill := time.NewTimer(after * r.cfg.Second)
	defer kill.Stop()
	look := time.NewTicker(max(r.cfg.Second/50, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case err = <-ended:
			waited, ended = true, nil
		case <-look.C: // other processes in the group may outlive its leader
		case <-kill.C:
			syscall.Kill(-group, syscall.SIGKILL)
			if !waited {
				syscall.Kill(group, syscall.SIGKILL)
				select {
				case err = <-ended:
					waited = true
				case <-time.After((leaveAfter + 1) * r.cfg.Second):
				}
			}
			return waited, err
		}
		if waited && syscall.Kill(-group, 0) != nil {
			return waited, err
		}
	}
}

// facts returns the variables that describe the message. Each variable has two names. The second one is for
// programs written for aimx.
func facts(run *hook.Run) (env []string) {
	for _, f := range [][2]string{
		{"HOOK_NAME", run.Hook.Name}, {"EVENT", run.Hook.Event}, {"MAILBOX", run.Hook.Mailbox},
		{"FROM", run.From}, {"TO", run.To}, {"SUBJECT", run.Subject},
		{"FILEPATH", run.File}, {"MESSAGE_ID", run.MessageID}, {"ID", run.ID}, {"DATE", run.Date}, {"ATTACHMENTS", attached(run)},
	} {
		value := f[1]
		if len(value) > maxFact {
			value = value[:maxFact]
			for !utf8.ValidString(value) {
				value = value[:len(value)-1]
			}
		}
		env = append(env, "MAILTREE_"+f[0]+"="+value, "AIMX_"+f[0]+"="+value)
	}
	return env
}

// attached returns the message's attachments as a JSON list. If the list would not fit in a variable, attached omits
// the last attachments.
func attached(run *hook.Run) string {
	type one struct {
		Name      string `json:"name,omitempty"`
		MediaType string `json:"media_type"`
		Bytes     int64  `json:"bytes"`
		Path      string `json:"path"`
		URI       string `json:"uri"` // URI in the aimx toolset
	}
	all := []one{}
	for _, a := range run.Attachments {
		all = append(all, one{a.Name, a.MediaType, a.Bytes, a.Path, "resource://attachment/" + a.SHA1 + "?project=" + run.Hook.Project})
	}
	for {
		text, err := json.Marshal(all)
		if err != nil {
			panic(err) // cannot happen, because the list contains only strings and numbers
		}
		if len(text) <= maxFact {
			return string(text)
		}
		all = all[:len(all)-1]
	}
}

// account is the OS user that a command runs as.
type account struct {
	uid, gid   int
	groups     []uint32
	name, home string
}

// nobody is the group id that a command gets if its user has no account.
const nobody = 65534

// accountOf returns the account of an OS user. If the system has no account for the uid, the result contains only the
// uid and defaults. If the system temporarily cannot look up the account, accountOf returns an error.
func accountOf(uid int) (account, error) {
	a := account{uid: uid, gid: nobody, name: strconv.Itoa(uid)}
	u, err := user.LookupId(strconv.Itoa(uid))
	if errors.As(err, new(user.UnknownUserIdError)) || tree.FaultOf(err) == tree.FaultGone {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	a.name, a.home = u.Username, u.HomeDir
	if gid, err := strconv.Atoi(u.Gid); err == nil {
		a.gid = gid
	}
	ids, err := u.GroupIds()
	if errors.As(err, new(syscall.Errno)) && passing(err) {
		return a, err
	}
	if err != nil {
		return a, nil
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			a.groups = append(a.groups, uint32(n))
		}
	}
	return a, nil
}

// credential returns the credential for running a command as the account's user, or nil if that is the server's own
// user.
func (a account) credential() *syscall.Credential {
	if a.uid == os.Geteuid() {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid), Groups: a.groups}
}

// dir returns the user's home folder if the user owns it, and "/" otherwise.
func (a account) dir() string {
	fi, err := os.Stat(a.home)
	if err != nil || !fi.IsDir() || !filepath.IsAbs(a.home) {
		return "/"
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != a.uid {
		return "/"
	}
	return a.home
}

func (a account) env() []string {
	env := []string{"USER=" + a.name, "LOGNAME=" + a.name, "HOME=" + a.dir()}
	for _, name := range []string{"PATH", "LANG", "LC_ALL", "TZ"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// tail keeps the last maxOutput bytes written to it.
type tail struct{ data []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.data = append(t.data, b[max(0, len(b)-maxOutput):]...)
	if len(t.data) > 2*maxOutput {
		t.data = append(t.data[:0], t.bytes()...)
	}
	return len(b), nil
}

func (t *tail) bytes() []byte { return t.data[max(0, len(t.data)-maxOutput):] }
