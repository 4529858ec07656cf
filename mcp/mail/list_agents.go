package mail

import (
	"cmp"
	"context"
	"strings"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// maxListedClaims is the maximum number of claims listed for each agent.
const maxListedClaims = 20

// Listed is an agent in a Directory.
type Listed struct {
	profileShape
	Address  string       `json:"address,omitempty"`  // address in other projects; set if the response lists all projects
	Machine  string       `json:"machine,omitempty"`  // set if the agent is on another machine
	Wakeable string       `json:"wakeable,omitempty"` // why new mail cannot wake the agent; "" if it can
	Unread   int          `json:"unread"`
	Claims   []claimShape `json:"claims"`
	More     int          `json:"more_claims,omitempty"`
}

func shapeListed(p *maildir.Project, a *maildir.AgentInfo) Listed {
	shown := a.Claims[:min(len(a.Claims), maxListedClaims)]
	return Listed{
		profileShape: shapeProfile(p, &a.AgentRow),
		Machine:      p.MachineOf(&a.AgentRow),
		Wakeable:     p.Sessions.Unwakeable(&a.AgentRow),
		Unread:       a.Unread,
		Claims:       shapeClaims(shown),
		More:         len(a.Claims) - len(shown),
	}
}

// Directory is the result of list_agents. It lists either agents or projects.
type Directory struct {
	Project  string   `json:"project,omitempty"`
	Agents   []Listed `json:"agents"`
	Projects []string `json:"projects,omitempty"`
	Next     string   `json:"next_cursor,omitempty"`
	Note     string   `json:"note,omitempty"`
}

type agentsRequest struct {
	Project string `json:"project_key,omitempty" jsonschema:"omit to list the projects" example:"/abs/path/backend"`
	Active  bool   `json:"active_only,omitempty" jsonschema:"only agents seen in the last week" default:"true"`
	All     bool   `json:"all_projects,omitempty" jsonschema:"the agents of all projects, with their addresses"`
	After   string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous page" example:"BlueLake"`
}

func (t *Toolset) listAgents() tool.Tool {
	return tool.Of(tool.Tool{
		Name:  "list_agents",
		Hints: tool.Reads(),
		About: "Use to find out who you can mail. Lists people and agents in other sessions and programs, with status, unread mail " +
			"and claims.",
		Out: Directory{},
	}, func(ctx context.Context, r *agentsRequest) (any, error) {
		switch {
		case r.All:
			return t.listEverywhere(ctx, r)
		case r.Project == "":
			return t.listProjects(ctx, r.After)
		}
		p, note, err := t.project(ctx, r.Project)
		if err != nil {
			return nil, err
		}
		out := Directory{Project: p.Slug, Agents: []Listed{}, Note: note}
		list := t.budget.Listing(ctx, tool.InTool, out)
		take := func(a *maildir.AgentInfo) bool {
			s := shapeListed(p, a)
			fits := list.Add(s)
			if fits {
				out.Agents = append(out.Agents, s)
			}
			return fits
		}
		end, err := p.Agents.EachAgent(ctx, maildir.AgentsQuery{Active: r.Active, After: r.After, Take: take})
		if err = cmp.Or(err, list.Err()); err != nil {
			return nil, err
		}
		if n := len(out.Agents); !end && n > 0 {
			out.Next = out.Agents[n-1].Name
		}
		return out, nil
	})
}

// listEverywhere lists the agents of all projects, sorted by slug and name. A cursor contains the slug and the name of
// an agent.
func (t *Toolset) listEverywhere(ctx context.Context, r *agentsRequest) (any, error) {
	out := Directory{Agents: []Listed{}}
	list := t.budget.Listing(ctx, tool.InTool, out)
	slug, after, _ := strings.Cut(r.After, "/")
	for _, p := range t.store.Projects() {
		if p.Slug < slug {
			continue
		}
		q := maildir.AgentsQuery{Active: r.Active, Take: func(a *maildir.AgentInfo) bool {
			s := shapeListed(p, a)
			s.Address = p.AddressOf(a.Name)
			fits := list.Add(s)
			if fits {
				out.Agents = append(out.Agents, s)
			}
			return fits
		}}
		if p.Slug == slug {
			q.After = after
		}
		end, err := p.Agents.EachAgent(ctx, q)
		if err = cmp.Or(err, list.Err()); err != nil {
			return nil, err
		}
		if n := len(out.Agents); !end && n > 0 {
			out.Next = out.Agents[n-1].Project + "/" + out.Agents[n-1].Name
			break
		}
	}
	return out, nil
}

// listProjects lists the projects whose slugs sort after the given one. It lists each project in a form that
// project_key accepts.
func (t *Toolset) listProjects(ctx context.Context, after string) (any, error) {
	out := Directory{Agents: []Listed{}}
	list := t.budget.Listing(ctx, tool.InTool, out)
	for _, p := range t.store.Projects() {
		if p.Slug <= after {
			continue
		}
		key := cmp.Or(p.HumanKey(), p.Slug)
		if !list.Add(key) {
			out.Next = after
			break
		}
		out.Projects, after = append(out.Projects, key), p.Slug
	}
	return out, list.Err()
}
