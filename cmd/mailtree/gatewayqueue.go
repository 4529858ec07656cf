package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/gateway"
	"mailtree/maildir/format"
	"mailtree/maildir/outgoing"
	mcpserver "mailtree/mcp"
)

// checkAddress reports what this server's settings mean for mail to an address.
func (a *app) checkAddress(ctx context.Context, address string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, lookups)
	defer cancel()
	all, err := a.cfg.Gateway.Check(ctx, a.store, a.cfg.Store, address)
	if err != nil {
		return nil, err
	}
	missing, err := (&gateway.Incoming{Store: a.store, Log: a.log}).Missing(ctx, &a.cfg.Gateway)
	return checked{all, missing}, err
}

// checked is the response to POST /mailtree/check-address.
type checked struct {
	Findings []gateway.Finding `json:"findings"`
	Missing  []string          `json:"missing,omitempty"` // mailboxes in the server's settings that do not exist
}

func gatewayCheckCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "check ADDRESS",
		Short: "Explain what would happen to mail sent to an address",
		Long: "Explain what would happen to mail sent to ADDRESS: incoming mail if the address belongs to this store, otherwise\n" +
			"outgoing mail. The command uses the running server's settings: mailboxes, trust, allow-list, mail servers and keys.\n" +
			"Nothing is sent. The exit status is 0 if nothing prevents the delivery, otherwise 1.",
		Args: cobra.ExactArgs(1),
	}
	f := &deskFlags{}
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		bad := false
		err := askAndShow(c.Context(), p, f, "check-address", mcpserver.CheckAsk{Address: args[0]}, func(d *deskWork, found *checked) error {
			for _, l := range found.Findings {
				mark := "ok"
				if !l.OK {
					mark, bad = "!!", true
				}
				d.Tell("%s  %s\n", mark, cli.Line(l.Text))
			}
			return nil
		})
		if err == nil && bad {
			err = &exitError{code: exitFailed}
		}
		return err
	}
	return c
}

func gatewayQueueCommand(p *program) *cobra.Command {
	var ask mcpserver.QueueAsk
	c := &cobra.Command{
		Use:   "queue",
		Short: "List email that has not been sent yet, with the remote server's last reply",
		Long: "List email to other domains that has not been sent yet. With --retry, the server retries an item now, even if the\n" +
			"item failed or it is unknown whether it arrived; in the latter case, it may arrive twice. With --drop, the server\n" +
			"removes the item without sending it and notifies no one.",
		Args: cobra.NoArgs,
	}
	f := &deskFlags{}
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	c.Flags().StringVar(&ask.Retry, "retry", "", "try to send the item with this id now")
	c.Flags().StringVar(&ask.Drop, "drop", "", "drop the item with this id")
	c.MarkFlagsMutuallyExclusive("retry", "drop")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return askAndShow(c.Context(), p, f, "queue", ask, func(d *deskWork, q *mcpserver.Queued) error {
			showQueue(d, q.Items)
			return nil
		})
	}
	return c
}

func showQueue(d *deskWork, items []outgoing.Item) {
	rows := make([]cli.Row, len(items))
	for i, item := range items {
		next := ""
		if item.State == outgoing.Queued || item.State == outgoing.Deferred {
			next = "next " + d.In(format.FormatTime(item.Next))
		}
		rows[i] = cli.Row{Cells: []string{
			item.ID, cli.Line(item.From), cli.Line(item.To), fmt.Sprintf("%s (%d)", item.State, item.Attempts), next, cli.Line(item.Reply),
		}}
	}
	d.Table(rows)
	if len(rows) == 0 {
		d.Printf("%s\n", d.Faint("the queue is empty"))
	}
}
