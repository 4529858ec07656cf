package mail

import (
	"cmp"
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailtree/maildir/format"
)

// maxCompletions is the maximum number of values in one response, as specified by the protocol.
const maxCompletions = 100

// completes maps each argument of a template or prompt to the kind of value that completes it.
var completes = map[string]map[string]format.Kind{
	inboxTemplate:      {"agent": format.KindProfile, "project": format.KindProject},
	messageTemplate:    {"project": format.KindProject},
	threadTemplate:     {"thread_id": format.KindOther, "project": format.KindProject},
	attachmentTemplate: {"project": format.KindProject},
	claimsTemplate:     {"project": format.KindProject},

	"mail":    {"agent": format.KindProfile, "project": format.KindProject},
	"ask":     {"to": format.KindProfile},
	"handoff": {"to": format.KindProfile},
}

// complete suggests values for an argument of a template or prompt. It returns no suggestions, and no error, for an
// unknown argument.
func (t *Toolset) complete(ctx context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	res := &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{}}}
	of := req.Params.Ref
	kind, ok := completes[cmp.Or(of.URI, of.Name)][req.Params.Argument.Name]
	if !ok || t.store == nil {
		return res, nil
	}
	var slug string
	if c := req.Params.Context; c != nil && c.Arguments["project"] != "" && kind != format.KindProject {
		if slug = t.slug(ctx, ref{project: c.Arguments["project"]}); slug == "" {
			return res, nil
		}
	}
	names := t.store.Complete(ctx, kind, slug, req.Params.Argument.Value, maxCompletions+1)
	n := min(len(names), maxCompletions)
	res.Completion.Values, res.Completion.HasMore = append(res.Completion.Values, names[:n]...), n < len(names)
	if n == len(names) {
		res.Completion.Total = n
	}
	return res, nil
}
