package stdio

import (
	"cmp"
	"encoding/json"
	"fmt"

	"golang.org/x/mod/semver"

	"mailtree/mcp/tool"
)

// welcome returns the server's response to a client's first request, in either protocol era. If the server is older
// than this program, welcome logs this and adds a notice at the beginning of the instructions, where the model and most
// clients show it. Versions that are not semantic versions, such as devel, are never treated as older.
func (b *bridge) welcome(answer []byte) []byte {
	type info struct{ Version string }
	var a struct {
		Result struct {
			ServerInfo info `json:"serverInfo"`
			Meta       struct {
				ServerInfo info `json:"io.modelcontextprotocol/serverInfo"`
			} `json:"_meta"`
			Instructions string `json:"instructions"`
		} `json:"result"`
	}
	var message, result map[string]json.RawMessage
	if json.Unmarshal(answer, &a) != nil || json.Unmarshal(answer, &message) != nil || json.Unmarshal(message["result"], &result) != nil {
		return answer
	}
	server := cmp.Or(a.Result.ServerInfo.Version, a.Result.Meta.ServerInfo.Version)
	if !semver.IsValid(server) || semver.Compare(server, b.cfg.Version) >= 0 {
		return answer
	}
	b.log.Warn("stdio: the server is older than this program; run `mailtree stop`, and the next call will start the new version",
		"server", server, "program", b.cfg.Version)
	notice := fmt.Sprintf("The running mailtree server (%s) is older than the installed mailtree (%s). Ask the user to run "+
		"`mailtree stop`; the next call starts the new version.\n\n", server, b.cfg.Version)
	result["instructions"] = tool.Encode(notice + a.Result.Instructions)
	message["result"] = tool.Encode(result)
	return tool.Encode(message)
}
