package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joho/godotenv"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailtree/cmd/mailtree/cli"
	"mailtree/gateway"
	"mailtree/maildir"
	"mailtree/maildir/address"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	"mailtree/mcp/tool"
)

// config contains the validated value of every setting. Flags override the environment, which overrides .env, which
// overrides the defaults. See docs/reference/settings.md, "Settings".
type config struct {
	settings []setting // the settings as given, for `mailtree config`
	misspelt []string  // one sentence for each name in .env that looks like a misspelled setting

	Store          string // absolute path
	Host           string
	Port           int
	LogLevel       slog.Level
	LogFormat      string // text or json
	RequireToken   bool
	UserOnly       bool // other OS users on this machine need the token
	Loopback       bool
	Socket         string // a socket in addition to the store's own, open to other OS users; may be empty
	MaxMessage     int64  // bytes
	MaxFanout      int64  // bytes
	MaxProjects    int
	Scope          storedir.Scope
	MaxAnswer      int // bytes
	MailboxDepth   int // unread messages
	Attachments    attachment.Settings
	CommitExternal bool
	Idle           time.Duration // how long a background server keeps running without connections
	SyncInterval   time.Duration
	ClaimAlone     bool
	Poll           time.Duration // time between scans of the trees; 0 means that file events are used instead
	Domains        []string      // domains of mailbox addresses, in lower case; Message-IDs and authors use the first domain
	SummaryCommand string        // a shell command; may be empty
	Notify         []string      // a program and its arguments; may be empty

	Nudge bool // the server types notices of new mail into agents' tmux windows

	Gateway gateway.Config

	background bool // this is a background server: it has no TCP port, logs to the store, and exits when no client uses it

	now  func() time.Time  // replaces the clock in tests; nil means the system's clock
	step func(name string) // called at each step, where a test may kill the program; nil except in tests
}

// setting is a setting, with its value and the source of the value.
type setting struct {
	Name, Flag, Default, Help string
	of                        string // the commands that have the flag, separated by spaces; empty means all commands
	program                   bool   // the value is a program to run, so the .env of a cloned folder must not set it
	Value, Source             string // Source is flag, environment, .env or default
}

// settings lists all settings. The first six have the same names as in the servers that mailtree replaces.
func settings() []setting {
	return append([]setting{
		{
			Name:    "MCP_MAIL_STORE",
			Flag:    "store",
			Default: "~/.mailtree",
			Help:    "folder for the mail, the index and the server's files",
		},
		{
			Name:    "HOST",
			Flag:    "host",
			of:      "serve setup config",
			Default: "127.0.0.1",
			Help:    "address to listen on; any address other than loopback requires AUTH=token",
		},
		{
			Name:    "PORT",
			Flag:    "port",
			of:      "serve setup config",
			Default: "8765",
			Help:    "TCP port to listen on; 0 picks a free port",
		},
		{
			Name:    "LOG_LEVEL",
			Flag:    "log-level",
			Default: "info",
			Help:    "debug, info, warn or error",
		},
		{
			Name:    "IMAGE_INLINE_MAX_BYTES",
			Default: strconv.Itoa(attachment.MaxInline),
			Help:    "maximum size of an image embedded in a body, in bytes; larger images become files",
		},
		{
			Name:    "ATTACHMENT_POLICY",
			Default: string(attachment.ImagesAuto),
			Help: "how to store images in bodies. auto: convert them to WebP, embed small ones, and store others as files. file: like " +
				"auto, but store all as files. inline: like auto, but replace large images with a note. keep: like auto, but convert " +
				"images only if the sender asks for it",
		},
		{
			Name:    "LOG_FORMAT",
			Flag:    "log-format",
			Default: "text",
			Help:    "text or json",
		},
		{
			Name:    "AUTH",
			Flag:    "auth",
			of:      "serve setup config",
			Default: "user",
			Help: "who may use the server over HTTP. user: your OS user and root (only on Linux; on other systems, the default is open); " +
				"open: every OS user on this machine; token: only requests with the store's token",
		},
		{
			Name:    "SOCKET",
			Flag:    "socket",
			of:      "serve stdio config",
			Default: "",
			Help: "path of a Unix socket, outside the store, through which other OS users can use the aimx tools; HTTP then " +
				"requires the token",
		},
		{Name: "MAX_MESSAGE_BYTES", Default: "8388608", Help: "maximum size of a message file, in bytes"},
		{
			Name:    "MAX_FANOUT_BYTES",
			Default: strconv.Itoa(maildir.MaxFanout),
			Help:    "maximum number of bytes that one message may add to inboxes: its file size times its number of recipients",
		},
		{
			Name:    "MAX_PROJECTS",
			Default: strconv.Itoa(maildir.MaxProjects),
			Help:    "maximum number of projects; existing projects keep working",
		},
		{
			Name:    "PROJECT_SCOPE",
			Default: "repo",
			Help:    "repo: all paths in a Git working tree share one project; path: each path is a separate project",
		},
		{
			Name:    "MAX_ANSWER_BYTES",
			Default: strconv.Itoa(int(tool.DefaultBudget)),
			Help:    "size limit for the response to one call, in bytes; longer lists and texts are split into several responses",
		},
		{
			Name:    "MAILBOX_DEPTH",
			Default: strconv.Itoa(maildir.MailboxDepth),
			Help:    "maximum number of unread messages in a mailbox; beyond that, postal refuses to send to it",
		},
		{
			Name:    "MAX_ATTACHMENT_BYTES",
			Default: strconv.Itoa(attachment.MaxFile),
			Help:    "maximum size of an attached file, in bytes",
		},
		{
			Name:    "MAX_ATTACHED_BYTES",
			Default: strconv.Itoa(attachment.MaxTotal),
			Help:    "maximum total size of one message's files, in bytes",
		},
		{
			Name:    "ATTACHMENT_ROOTS",
			Default: "",
			Help:    "folders, separated by colons, from which attachments may be read, in addition to the code base and the mail tree",
		},
		{Name: "COMMIT_EXTERNAL", Default: "on", Help: "on: commit edits made outside the server; off: do not commit them"},
		{
			Name:    "WATCH",
			Default: "events",
			Help: "how to detect edits. events: the operating system reports them; poll or poll:30s: check every 2 or 30 seconds, for " +
				"file systems that do not report edits",
		},
		{Name: "SYNC_INTERVAL", Default: "10s", Help: "how often to poll the shared repository"},
		{
			Name:    "CLAIM_OFFLINE",
			Default: "refuse",
			Help: "how to handle claims while the shared repository is unreachable. refuse: refuse them; local: grant " +
				"them, but only on this machine",
		},
		{Name: "IDLE", Default: "5m", Help: "how long a background server keeps running when no client is connected"},
		{
			Name:    "SUMMARY_COMMAND",
			Default: "",
			program: true,
			Help:    "a command that reads a thread on standard input and prints a summary; cannot be set in .env",
		},
		{
			Name:    "NOTIFY_COMMAND",
			Default: "",
			program: true,
			Help: "a program and its arguments, separated by spaces, that the server runs when an agent is blocked on you; cannot " +
				"be set in .env",
		},
		{Name: "NUDGE", Default: "off", Help: "tmux: type a notice into the tmux window of an agent that is ready and has new mail"},
		{
			Name:    "MAIL_DOMAIN",
			Default: address.Default,
			Help:    "domains of mailbox addresses, separated by commas; Message-IDs and authors in git log use the first",
		},
	}, gatewaySettings()...)
}

// addSettingFlags adds to f the flags for the settings of a command. If command is "", it adds the flags that all
// commands have.
func addSettingFlags(f *pflag.FlagSet, command string) {
	for _, s := range settings() {
		if s.Flag == "" || s.of != command && !slices.Contains(strings.Fields(s.of), command) {
			continue
		}
		help := s.Help + " (" + s.Name
		if s.Default != "" {
			help += ", default " + s.Default
		}
		f.String(s.Flag, "", help+")")
	}
}

// loadConfig collects and checks all settings. The error lists every invalid setting.
func loadConfig(flags *pflag.FlagSet, env []string, dotenv string, home func() (string, error)) (*config, error) {
	file := map[string]string{}
	if dotenv != "" {
		m, err := godotenv.Read(dotenv)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("cannot read the .env in this folder. The file must be readable, and every line must be " +
				"NAME=value, blank, or a # comment. Fix the file, or start in another folder")
		}
		file = m
	}
	c := &config{misspelt: misspelt(file)}
	values := map[string]string{}
	for _, s := range settings() {
		s.Value, s.Source = s.Default, "default"
		if v, ok := file[s.Name]; ok && !s.program {
			s.Value, s.Source = v, ".env"
		}
		if v, ok := lookup(env, s.Name); ok {
			s.Value, s.Source = v, "environment"
		}
		if s.Flag != "" && flags.Changed(s.Flag) {
			s.Value, _ = flags.GetString(s.Flag)
			s.Source = "flag"
		}
		c.settings = append(c.settings, s)
		values[s.Name] = s.Value
	}
	return c, c.parse(values, home)
}

// misspelt returns a sentence for each name that looks like a misspelled setting. It ignores all other names, because
// other programs may read the same file.
func misspelt(file map[string]string) (out []string) {
	all := settings()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if near := format.Misspelt(name, names); near != "" {
			out = append(out, fmt.Sprintf("the .env in this folder sets %s, which is not a setting. Did you mean %s?",
				format.Printable(name), near))
		}
	}
	return out
}

// source returns where the value of a setting came from: flag, environment, .env or default.
func (c *config) source(name string) string { return c.setting(name).Source }

// given returns the flag if the setting's value came from a flag, and otherwise the setting's name.
func (c *config) given(name string) string {
	if s := c.setting(name); s.Source == "flag" {
		return "--" + s.Flag
	}
	return name
}

func (c *config) setting(name string) setting {
	return c.settings[slices.IndexFunc(c.settings, func(s setting) bool { return s.Name == name })]
}

func lookup(env []string, name string) (value string, ok bool) {
	for _, e := range env {
		if k, v, _ := strings.Cut(e, "="); k == name && v != "" {
			value, ok = v, true
		}
	}
	return value, ok
}

func (c *config) parse(v map[string]string, home func() (string, error)) error {
	var errs []error
	bad := func(name, want string) {
		errs = append(errs, fmt.Errorf("%s is %q, but must be %s", c.given(name), v[name], want))
	}
	number := func(name string, low, high int64) int64 {
		n, err := strconv.ParseInt(v[name], 10, 64)
		if err != nil || n < low || n > high {
			bad(name, fmt.Sprintf("a number from %d to %d", low, high))
		}
		return n
	}
	choice := func(name string, of ...string) string {
		if !slices.Contains(of, v[name]) {
			bad(name, "one of "+strings.Join(of, ", "))
		}
		return v[name]
	}
	var err error
	if c.Store, err = absolute(v["MCP_MAIL_STORE"], home); err != nil {
		errs = append(errs, fmt.Errorf("MCP_MAIL_STORE: %w", err))
	} else if fi, err := os.Stat(c.Store); err == nil && !fi.IsDir() {
		bad("MCP_MAIL_STORE", "a folder")
	}
	c.Host = v["HOST"]
	c.Port = int(number("PORT", 0, 65535))
	if c.Attachments.MaxInline = int(number("IMAGE_INLINE_MAX_BYTES", 0, 64<<20)); c.Attachments.MaxInline == 0 {
		c.Attachments.MaxInline = -1
	}
	c.Attachments.Images = attachment.ImagePolicy(choice("ATTACHMENT_POLICY", "auto", "file", "inline", "keep"))
	c.Attachments.MaxFile = number("MAX_ATTACHMENT_BYTES", 1, attachment.MaxStored)
	c.Attachments.MaxTotal = number("MAX_ATTACHED_BYTES", 1, 4*attachment.MaxStored)
	if c.LogLevel.UnmarshalText([]byte(v["LOG_LEVEL"])) != nil {
		bad("LOG_LEVEL", "one of debug, info, warn, error")
	}
	c.LogFormat = choice("LOG_FORMAT", "text", "json")
	auth := choice("AUTH", "user", "open", "token")
	c.RequireToken, c.UserOnly = auth == "token", auth == "user"
	if v["SOCKET"] != "" {
		// Without a token, OS users who may use only the aimx toolset on the socket could use the other tools over
		// HTTP.
		c.RequireToken = true
		if c.Socket, err = absolute(v["SOCKET"], home); err != nil {
			errs = append(errs, fmt.Errorf("SOCKET: %w", err))
		} else if strings.HasPrefix(c.Socket, c.Store+string(filepath.Separator)) {
			bad("SOCKET", "a path outside the store, because other users have no access to the store")
		}
	}
	c.MaxMessage = number("MAX_MESSAGE_BYTES", 4096, 64<<20)
	c.MaxFanout = number("MAX_FANOUT_BYTES", 4096, 4<<30)
	c.MaxProjects = int(number("MAX_PROJECTS", 1, 100_000))
	c.Scope.PerPath = choice("PROJECT_SCOPE", "repo", "path") == "path"
	c.Scope.Home, _ = home() // if there is no home folder, Scope.Home is "" and excludes no folder
	c.MaxAnswer = int(number("MAX_ANSWER_BYTES", int64(tool.LeastBudget), 16<<20))
	c.MailboxDepth = int(number("MAILBOX_DEPTH", 1, 10_000_000))
	c.CommitExternal = choice("COMMIT_EXTERNAL", "on", "off") == "on"
	if c.Poll, err = pollInterval(v["WATCH"]); err != nil {
		bad("WATCH", "events, poll, or poll with a duration from 1s to 1h, such as poll:30s")
	}
	if c.SyncInterval, err = cli.Duration(v["SYNC_INTERVAL"]); err != nil || c.SyncInterval < time.Second || c.SyncInterval > time.Hour {
		bad("SYNC_INTERVAL", "a duration from 1s to 1h")
	}
	c.ClaimAlone = choice("CLAIM_OFFLINE", "refuse", "local") == "local"
	if c.Idle, err = cli.Duration(v["IDLE"]); err != nil || c.Idle <= 0 {
		bad("IDLE", "a duration such as 5m")
	}
	c.SummaryCommand = v["SUMMARY_COMMAND"]
	c.Notify = strings.Fields(v["NOTIFY_COMMAND"])
	if len(c.Notify) > 0 && strings.Contains(c.Notify[0], "/") && !filepath.IsAbs(c.Notify[0]) {
		bad("NOTIFY_COMMAND", "a program on the PATH or an absolute path, and its arguments")
	}
	c.Nudge = choice("NUDGE", "off", "tmux") == "tmux"
	c.Domains = fieldsOf(strings.ToLower(v["MAIL_DOMAIN"]))
	if len(c.Domains) == 0 || !all(c.Domains, mailDomain) {
		bad("MAIL_DOMAIN", "a domain such as mail.example.org, or several, separated by commas")
	}
	errs = append(errs, c.parseGateway(v, home)...)
	for _, r := range filepath.SplitList(v["ATTACHMENT_ROOTS"]) {
		abs, err := absolute(r, home)
		if err != nil {
			errs = append(errs, fmt.Errorf("ATTACHMENT_ROOTS: %w", err))
		}
		c.Attachments.Roots = append(c.Attachments.Roots, abs)
	}
	c.Loopback = c.Host == "localhost" || net.ParseIP(c.Host).IsLoopback()
	if !c.Loopback && !c.RequireToken {
		errs = append(errs, fmt.Errorf("HOST is %q, which other machines can reach: set AUTH=token as well, or use 127.0.0.1", c.Host))
	}
	return errors.Join(errs...)
}

// pollInterval parses the WATCH setting. It returns 0 if WATCH selects file events.
func pollInterval(watch string) (time.Duration, error) {
	switch watch {
	case "events":
		return 0, nil
	case "poll":
		return 2 * time.Second, nil
	}
	every, ok := strings.CutPrefix(watch, "poll:")
	d, err := cli.Duration(every)
	if !ok || err != nil || d < time.Second || d > time.Hour {
		return 0, errors.New("unknown value")
	}
	return d, nil
}

// mailDomain reports whether a domain can be used for mail. The domain must be a name, not an IP address.
func mailDomain(domain string) bool {
	_, err := format.ParseAddress("postmaster@" + domain)
	return err == nil && net.ParseIP(domain) == nil
}

// absolute makes a path absolute and expands a leading ~.
func absolute(p string, home func() (string, error)) (string, error) {
	if p == "~" || strings.HasPrefix(p, "~/") {
		h, err := home()
		if err != nil {
			return "", fmt.Errorf("cannot find your home folder (%v): use an absolute path", err)
		}
		p = filepath.Join(h, strings.TrimPrefix(p, "~"))
	}
	if p == "" {
		return "", errors.New("the path is empty: use an absolute path")
	}
	return filepath.Abs(p)
}

func (c *config) logger(std stdio) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(std.err, o))
	}
	return slog.New(slog.NewTextHandler(std.err, o))
}

func configCommand(p *program) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "config",
		Short: "Print each setting, its value and its source",
		Long: "Print each setting, its value and its source: a flag, the environment, the .env in this folder (which\n" +
			"`mailtree serve` reads), or the default.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			screen := cli.NewScreen(p.std.out, p.variable)
			var rows []cli.Row
			all := []settingShape{}
			for _, s := range p.cfg.settings {
				v := s.Value
				if s.Name == "MCP_MAIL_STORE" {
					v = p.cfg.Store
				}
				all = append(all, settingShape{s.Name, v, s.Source, s.Help})
				row := cli.Row{Cells: []string{s.Name, strconv.Quote(v), s.Source, s.Help}}
				if screen.Width > 0 { // a setting's help is too long for a column
					row.Cells, row.Below = row.Cells[:3], s.Help
				}
				rows = append(rows, row)
			}
			if asJSON {
				return p.printJSON(map[string]any{"settings": all})
			}
			return screen.Paged(c.Context(), func(s *cli.Screen) error {
				s.Table(rows)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// settingShape is the JSON form of a setting in the output of `mailtree config`.
type settingShape struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Help   string `json:"help"`
}
