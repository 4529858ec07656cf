package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"mailtree/maildir/keys"
	"mailtree/maildir/storedir"
)

func keyCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Show this store's public key and manage trusted keys",
		Long: "This store's server seals every message that it delivers with the store's key. Mail that another machine's server\n" +
			"has sealed, and that arrives with a `git pull`, is shown as verified once you trust that machine's key:\n\n" +
			"  mailtree key show                 on the other machine: print its public key and its name\n" +
			"  mailtree key trust KEY NAME       on this machine: trust that key\n\n" +
			"A machine that shares a project's mail (`mailtree sync`) publishes its key in the project: `key list` shows the key,\n" +
			"and `key trust ID` trusts it. First compare the id with the one that `key list` shows on the other machine, because\n" +
			"anyone who can write to the shared repository can publish a key under any name.\n\n" +
			"Trusted keys are stored in the store's file trusted_keys, one per line. A running server notices changes at once.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		&cobra.Command{
			Use:   "show",
			Short: "Print this store's public key and this machine's name, as arguments for `key trust`",
			Args:  cobra.NoArgs,
			RunE:  func(*cobra.Command, []string) error { return p.showKey() },
		},
		&cobra.Command{
			Use:   "trust KEY NAME",
			Short: "Trust another machine's key, specified as the key itself or the id of a published key",
			Args:  cobra.MinimumNArgs(1),
			RunE:  func(_ *cobra.Command, args []string) error { return p.trustKey(strings.Join(args, " ")) },
		},
		&cobra.Command{
			Use:   "distrust NAME",
			Short: "Stop trusting a machine's key, specified by name, key or key id",
			Args:  cobra.ExactArgs(1),
			RunE:  func(_ *cobra.Command, args []string) error { return p.distrustKey(args[0]) },
		},
		&cobra.Command{
			Use:   "list",
			Short: "List this store's key, the trusted keys and the published ones",
			Args:  cobra.NoArgs,
			RunE:  func(*cobra.Command, []string) error { return p.listKeys() },
		},
	)
	return c
}

// ownKey returns the store's public key.
func (p *program) ownKey() (keys.Key, error) {
	k, err := keys.Own(p.cfg.Store)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the store %s has no key yet. To create one, start `mailtree serve`", p.cfg.Store)
	}
	return k, err
}

func (p *program) showKey() error {
	k, err := p.ownKey()
	if err != nil {
		return err
	}
	if k.Name, err = os.Hostname(); err != nil || k.Name == "" {
		k.Name = "machine"
	}
	_, err = fmt.Fprintln(p.std.out, k)
	return err
}

func (p *program) trustKey(line string) error {
	id, name, _ := strings.Cut(line, " ")
	published, err := p.publishedKeys()
	if err != nil {
		return err
	}
	if k, known := published[id]; known {
		k.Name = cmp.Or(name, k.Name)
		line = k.Key.String()
	}
	k, err := keys.Parse(line)
	if err != nil {
		return &exitError{2, err}
	}
	if err := keys.Trust(p.cfg.Store, k); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.std.out, "From now on, mail sealed by %s (%s) is shown as verified.\n", k.Name, k.ID)
	return err
}

// publishedKey is a key that a machine has published.
type publishedKey struct {
	keys.Key
	project string // one of the projects that contain the key
}

// publishedKeys returns the keys that machines have published in the store's projects. It maps each key's id to the
// key.
func (p *program) publishedKeys() (map[string]publishedKey, error) {
	trees, err := storedir.OpenTrees(p.cfg.Store, p.cfg.MaxMessage)
	all := map[string]publishedKey{}
	for slug, t := range trees {
		found, ferr := keys.Published(t)
		err = cmp.Or(err, ferr)
		for _, k := range found {
			all[k.ID] = publishedKey{k, slug}
		}
	}
	return all, err
}

func (p *program) distrustKey(which string) error {
	if err := keys.Distrust(p.cfg.Store, which); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.std.out, "From now on, mail sealed by %s is shown as unverified.\n", which)
	return err
}

func (p *program) listKeys() error {
	own, err := p.ownKey()
	if err != nil {
		return err
	}
	trusted, bad := keys.Trusted(p.cfg.Store)
	out := tabwriter.NewWriter(p.std.out, 0, 0, 2, ' ', 0)
	published, err := p.publishedKeys()
	for _, k := range append([]keys.Key{own}, trusted...) {
		name := k.Name
		if name == "" {
			name = "(this store)"
		}
		fmt.Fprintf(out, "%s\t%s\n", k.ID, name)
		delete(published, k.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(published)) {
		fmt.Fprintf(out, "%s\t%s (published in %s, not trusted)\n", id, published[id].Name, published[id].project)
	}
	bad = errors.Join(bad, err)
	return errors.Join(out.Flush(), bad)
}
