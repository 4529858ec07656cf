package core

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// MinShort is the minimum length of a shortened id. The limit reduces the risk that a typo matches a message.
const MinShort = 4

// FullID is like maildir.Project.FullID, but its errors refer to the given field. If slug is "", it searches all
// projects.
func (s *Store) FullID(ctx context.Context, slug string, field refusal.Field, short string) (string, error) {
	threads, err := s.Index.Names(ctx, slug, format.KindOther, short, 1)
	if err != nil || slices.Contains(threads, short) {
		return short, err
	}
	return s.Lengthen(field, short, func(prefix string) ([]string, error) {
		return s.Index.Names(ctx, slug, format.KindCanonical, prefix, MaxListed)
	})
}

// Lengthen returns the full id for short. The callback with returns the ids that begin with prefix. See
// maildir.Project.FullID.
func (s *Store) Lengthen(field refusal.Field, short string, with func(prefix string) ([]string, error)) (string, error) {
	var found []string
	for _, prefix := range IDPrefixes(short, s.Now().UTC()) {
		ids, err := with(prefix)
		if err != nil {
			return "", err
		}
		if slices.Contains(ids, short) {
			return short, nil
		}
		found = append(found, ids...)
	}
	return OneID(field, short, found)
}

// OneID returns the only id in found. If found is empty or short is shorter than MinShort, it returns short itself.
// If found contains several ids, it returns ErrConflict.
func OneID(field refusal.Field, short string, found []string) (string, error) {
	slices.Sort(found)
	found = slices.Compact(found)
	switch {
	case len(found) == 0 || len(short) < MinShort:
		return short, nil
	case len(found) == 1:
		return found[0], nil
	}
	return "", &refusal.Error{
		What:  refusal.Conflict("{name} {arg} matches several messages: {choices}. Use more characters of the id."),
		Field: field,
		Name:  short,
		Near:  found[:min(len(found), MaxListed)],
	}
}

// IDPrefixes returns the prefixes of full ids that short may abbreviate.
func IDPrefixes(short string, now time.Time) []string {
	const made = "msg_"
	if !format.ValidID(short) {
		return nil
	}
	all := []string{short, made + short}
	if strings.Contains(short, "_") {
		return all
	}
	for day := range format.ShortDays {
		all = append(all, made+now.AddDate(0, 0, -day).Format("20060102")+"_"+short)
	}
	return all
}

// HeadNamed returns the message with the given id, without the body. If there is no such message, it returns an
// ErrNotFound that refers to the given field.
func (c *Mail) HeadNamed(ctx context.Context, field refusal.Field, id string) (*index.MessageRow, error) {
	id = c.Store.Domains.IDNamed(id)
	m, err := c.Store.Index.Message(ctx, c.Slug, id, index.WithoutBody, nil)
	if err == nil && m == nil {
		err = c.NoMessage(ctx, field, id)
	}
	return m, err
}

// Foreign returns the message with the given Message-ID, without the body. The Message-ID may be from this store's
// domain or from another one. Foreign returns nil if the project has no such message.
func (c *Mail) Foreign(ctx context.Context, messageID string) (*index.MessageRow, error) {
	if id := c.Store.Domains.IDNamed(messageID); id != messageID {
		return c.Store.Index.Message(ctx, c.Slug, id, index.WithoutBody, nil)
	}
	return c.Store.Index.FromElsewhere(ctx, c.Slug, messageID)
}

// NameAsTheyCame replaces the ids of messages from other domains with their original Message-IDs. It is the inverse
// of post.Post.joinForeign.
func (c *Mail) NameAsTheyCame(ctx context.Context, ids []string) error {
	for i, id := range ids {
		row, err := c.Store.Index.Message(ctx, c.Slug, id, index.WithoutBody, nil)
		if err != nil {
			return err
		}
		if row != nil {
			ids[i] = cmp.Or(row.MessageID, id)
		}
	}
	return nil
}
