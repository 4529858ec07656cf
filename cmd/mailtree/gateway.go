package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/gateway"
	"mailtree/maildir/address"
)

func gatewayCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "gateway",
		Short: "Set up and check email to and from other domains",
		Long: "Set up and check email to and from other domains.\n\n" +
			"  mailtree gateway setup example.org        the key, the DNS records, the Postfix settings\n" +
			"  mailtree gateway check ann@example.net    what would happen to mail sent there\n" +
			"  mailtree gateway queue                    email that has not been sent yet",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(gatewaySetupCommand(p), gatewayCheckCommand(p), gatewayQueueCommand(p))
	return c
}

// lookups is the time limit for all DNS lookups of one command.
const lookups = 20 * time.Second

func gatewaySetupCommand(p *program) *cobra.Command {
	var host string
	c := &cobra.Command{
		Use:   "setup DOMAIN",
		Short: "Create a domain's key and print its DNS records and Postfix settings",
		Long: "Create a key to sign a domain's mail if the domain has none yet, and print the DNS records that the domain must\n" +
			"publish. For each record, check whether it is published; if it is not, show what is published instead. Then print\n" +
			"the settings and the Postfix commands for incoming and outgoing mail. The command writes only the key, so you can run\n" +
			"it again to check the records. The exit status is 0 if every record is published, otherwise 1.",
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&host, "mx", "", "the mail server's DNS name (default: this machine's if it has one, otherwise mail.DOMAIN)")
	c.RunE = func(c *cobra.Command, args []string) error {
		domain := strings.ToLower(args[0])
		if !mailDomain(domain) || !strings.Contains(domain, ".") {
			return &exitError{exitUsage, fmt.Errorf("%q is not a valid mail domain: use a domain such as example.org", args[0])}
		}
		if domain == address.Default {
			return &exitError{exitUsage, fmt.Errorf("%s works only on this machine: use your own domain, such as "+
				"example.org", domain)}
		}
		if host == "" {
			host = mailHost(domain)
		}
		ctx, cancel := context.WithTimeout(c.Context(), lookups)
		defer cancel()
		return p.gatewaySetup(ctx, domain, host)
	}
	return c
}

// mailHost returns this machine's name if the name looks like a public DNS name, and mail.DOMAIN otherwise.
func mailHost(domain string) string {
	if name, err := os.Hostname(); err == nil && strings.Contains(name, ".") && !strings.HasSuffix(name, ".local") {
		return strings.ToLower(name)
	}
	return "mail." + domain
}

func (p *program) gatewaySetup(ctx context.Context, domain, host string) error {
	s := cli.NewScreen(p.std.out, p.variable)
	made, err := gateway.MakeKey(p.cfg.Store, domain, time.Now())
	if err != nil {
		return err
	}
	file, _, err := gateway.KeyFile(p.cfg.Store, domain)
	if err != nil {
		return err
	}
	records, err := p.cfg.Gateway.Records(ctx, p.cfg.Store, domain, host)
	if err != nil {
		return err
	}
	s.Printf("%s\n", s.Bold("The key"))
	if made {
		file += " (created now)"
	}
	s.Printf("%s\n\n", file)
	s.Printf("%s\n", s.Bold("Records that "+domain+" must publish"))
	missing := 0
	for _, r := range records {
		s.Printf("%s\n", r.String())
		if r.Problem == nil {
			s.Printf("    %s\n", s.Faint("ok: published"))
			continue
		}
		missing++
		s.Tell("    !! %s\n", cli.Line(r.Problem.Error()))
	}
	domains := p.gatewayDomains(domain)
	s.Printf("\n%s\n%s\n", s.Bold("Settings for mailtree serve"), serveLines(domains))
	s.Printf("%s\n%s", s.Bold("Postfix configuration (run as root)"), postfixLines(domains, account()))
	if missing > 0 {
		return &exitError{exitFailed, fmt.Errorf("%s of %s must still be published as shown above. Then run this command again",
			count(missing, "record"), domain)}
	}
	return nil
}

// gatewayDomains returns the domains for the gateway: the domains in MAIL_DOMAIN, and the domain that is being set
// up.
func (p *program) gatewayDomains(domain string) (all []string) {
	for _, d := range append(slices.Clone(p.cfg.Domains), domain) {
		if d != address.Default && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// account returns the name of the OS user who runs this program, or "mailtree" if the name is unknown.
func account() string {
	u, err := user.Current()
	if err != nil {
		return "mailtree"
	}
	return u.Username
}

// postfixSocket is the path of the gateway's socket. It is relative to Postfix's queue folder, so it also works in
// Postfix's chroot.
const postfixSocket = "mailtree/lmtp"

// serveLines returns the server's settings for domains whose mail passes through Postfix.
func serveLines(domains []string) string {
	return "MAIL_DOMAIN=" + strings.Join(domains, ",") + "\n" +
		"GATEWAY_LISTEN=lmtp+unix:/var/spool/postfix/" + postfixSocket + "\n" +
		"GATEWAY_POSTMASTER=NAME            a mailbox: `mailtree mailbox create NAME`\n" +
		"GATEWAY_ALLOW=*                    or the domains that mail may be sent to\n" +
		"GATEWAY_SMARTHOST=smtp://127.0.0.1:25\n"
}

// postfixLines returns the configuration for Postfix. With it, Postfix delivers mail for the domains to a server that
// runs as the given OS user, and relays mail from that server. The setgid bit makes the socket inherit the folder's
// group.
func postfixLines(domains []string, account string) string {
	transports := make([]string, len(domains))
	for i, d := range domains {
		transports[i] = d + "=lmtp:unix:" + postfixSocket
	}
	return "# This replaces relay_domains and transport_maps. Add their current values (postconf relay_domains transport_maps).\n" +
		"install -d -o " + account + " -g postfix -m 2750 /var/spool/postfix/mailtree\n" +
		"postconf -e 'relay_domains = " + strings.Join(domains, ", ") + "'\n" +
		"postconf -e 'transport_maps = inline:{" + strings.Join(transports, ", ") + "}'\n" +
		"postconf -e 'smtpd_recipient_restrictions = permit_mynetworks, reject_unauth_destination, reject_unverified_recipient'\n" +
		"postconf -e 'unverified_recipient_reject_code = 550'\n" +
		"postconf -e 'message_size_limit = 26214400'\n" +
		"systemctl reload postfix\n"
}
