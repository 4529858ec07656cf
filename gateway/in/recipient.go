package in

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/emersion/go-smtp"

	"mailtree/gateway/spool"
	"mailtree/maildir/format"
)

// Directory looks up mailboxes.
type Directory interface {
	// Lookup returns the mailbox for an address in one of our domains. If there is no mailbox, it returns ErrUnknown.
	// If the mailbox accepts no more mail, it returns ErrFull. For any other error, the server tells the sender to try
	// again later.
	Lookup(ctx context.Context, local, domain string) (mailbox string, err error)
}

// ErrUnknown means that there is no mailbox with that address.
var ErrUnknown = errors.New("no such mailbox")

func refuse(code int, class, subject, detail int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: text}
}

// Mailbox returns the mailbox for a recipient. Mail to postmaster@ and abuse@ goes to the postmaster's mailbox. For any
// other address, Mailbox looks for a mailbox with that address, and then for one without the part after a plus sign. If
// neither exists, it returns the catch-all mailbox. The error is an SMTP reply.
func (s *Server) Mailbox(ctx context.Context, address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !slices.Contains(s.cfg.Domains, strings.ToLower(address[at+1:])) {
		return "", refuse(550, 5, 7, 1, "Relaying is not allowed: this server does not accept mail for the domain")
	}
	local, domain := address[:at], strings.ToLower(address[at+1:])
	if _, err := format.ParseAddress(address); err != nil {
		return "", refuse(550, 5, 1, 3, "The recipient address is not valid")
	}
	if strings.EqualFold(local, "postmaster") || strings.EqualFold(local, "abuse") {
		return s.cfg.Postmaster, nil
	}
	name, err := s.cfg.Directory.Lookup(ctx, local, domain)
	if before, _, plus := strings.Cut(local, "+"); errors.Is(err, ErrUnknown) && plus && before != "" {
		name, err = s.cfg.Directory.Lookup(ctx, before, domain)
	}
	switch {
	case err == nil:
		return name, nil
	case errors.Is(err, ErrUnknown) && s.cfg.CatchAll != "":
		return s.cfg.CatchAll, nil
	case errors.Is(err, ErrUnknown):
		return "", refuse(550, 5, 1, 1, "There is no such mailbox")
	}
	return "", s.reply(err)
}

// reply converts an error from the store to an SMTP reply.
func (s *Server) reply(err error) error {
	var known *smtp.SMTPError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.Is(err, spool.ErrNoRoom):
		return refuse(452, 4, 3, 1, "Insufficient system storage, try again later")
	case errors.Is(err, ErrFull):
		return refuse(452, 4, 2, 2, "The mailbox is full, try again later")
	}
	s.cfg.Log.Error("cannot deliver incoming mail", "error", err)
	return refuse(451, 4, 3, 0, "The message could not be stored, try again later")
}
