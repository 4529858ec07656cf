package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"mailtree/cmd/mailtree/cli"
	"mailtree/mcp/mail"
)

// confirm asks the user the question if an argument is a row number and the last list was not printed by `mailtree`
// without arguments, because the user may then be thinking of a different list. It asks on the terminal, even if
// standard input contains the text of a message. It returns an error if the user does not agree.
func (p *program) confirm(d *deskWork, question string) error {
	if !d.unsure {
		return nil
	}
	from := p.std.in
	if !cli.IsTerminal(from) {
		tty, err := os.Open("/dev/tty")
		if err != nil {
			return &exitError{exitUsage, errors.New("cannot ask you to confirm the row number, because there is no terminal: " +
				"use the message id")}
		}
		defer tty.Close()
		from = tty
	}
	agreed := []string{"", "y", "yes"}
	if answer, ok := p.ask(from, question+" [Y/n] "); !ok || !slices.Contains(agreed, answer) {
		return errors.New("nothing was done")
	}
	return nil
}

// confirmMessages is like confirm, but builds the question from what, an action such as "Archive", and from the
// subjects and senders of the messages.
func (p *program) confirmMessages(ctx context.Context, d *deskWork, what string, ids []string) error {
	if !d.unsure {
		return nil
	}
	const most = 3
	var about []string
	for _, id := range ids[:min(len(ids), most)] {
		var of mail.MessageResource
		if err := d.Read(ctx, "resource://message/"+url.PathEscape(id)+"?project="+d.Slug, &of); err != nil {
			return err
		}
		about = append(about, fmt.Sprintf(`"%s" from %s`, cli.Line(of.Message.Subject), cli.Line(of.Message.From)))
	}
	text := what + " " + strings.Join(about, ", ")
	if more := len(ids) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return p.confirm(d, text+"?")
}

// ask prints the question to standard error, and returns the line that the user types, in lower case. ok is false if
// standard input ends before the end of the line.
func (p *program) ask(from io.Reader, question string) (answer string, ok bool) {
	cli.NewScreen(p.std.err, p.variable).Tell("%s", question)
	line, err := bufio.NewReader(from).ReadString('\n')
	return strings.ToLower(strings.TrimSpace(line)), err == nil
}
