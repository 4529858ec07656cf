package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"mailtree/maildir/keys"
)

// These are the header that carries the token, and the prefix of the header's value.
const (
	authorization = "Authorization"
	bearer        = "Bearer "
)

func tokenCommand(p *program) *cobra.Command {
	var headers bool
	c := &cobra.Command{
		Use:   "token",
		Short: "Print the token for HTTP requests with AUTH=token",
		Long: "Print the token that HTTP requests need with AUTH=token. A client that gets its headers from a command (headersHelper\n" +
			"in Claude Code) runs `mailtree token --json`, so that its files do not contain the token.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			token, err := p.token()
			if err != nil {
				return err
			}
			if headers {
				return json.NewEncoder(p.std.out).Encode(map[string]string{authorization: bearer + token})
			}
			_, err = fmt.Fprintln(p.std.out, token)
			return err
		},
	}
	c.Flags().BoolVar(&headers, "json", false, "print the headers of a request, as JSON")
	return c
}

// token returns the store's token.
func (p *program) token() (string, error) {
	token, err := keys.OwnToken(p.cfg.Store)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the store %s has no token yet. To create one, start `mailtree serve`", p.cfg.Store)
	}
	return token, err
}
