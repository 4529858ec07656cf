package mcp

import (
	"bytes"
	crand "crypto/rand"
	"encoding/json"
	"strconv"
)

// The SDK decodes JSON-RPC numbers as float64 and converts ids to int64, so it would answer 2^53+1 with 2^53, and 1.5
// with 1. The server therefore replaces numbers that the SDK would alter with strings, and puts the numbers back into
// the answer. This applies to ids, to the id in a cancellation, and to progress tokens.

// numberMark begins the strings that replace numbers. Clients cannot know this mark, so the server never mistakes a
// client's text for such a string.
var numberMark = "number-" + crand.Text() + ":"

// keptNumbers are the numbers in a request that the server passes to the SDK as strings.
type keptNumbers []json.RawMessage

// isLost reports whether the SDK would alter a number.
func isLost(number json.RawMessage) bool {
	if len(number) == 0 || number[0] != '-' && (number[0] < '0' || number[0] > '9') {
		return false
	}
	f, err := strconv.ParseFloat(string(number), 64)
	return err != nil || strconv.FormatInt(int64(f), 10) != string(number)
}

// keep returns the string that replaces a number.
func (k *keptNumbers) keep(number json.RawMessage) json.RawMessage {
	*k = append(*k, number)
	return strconv.AppendQuote(nil, numberMark+string(number))
}

// replace returns a message in which the numbers that the SDK would alter are replaced by strings. If there are none,
// replace returns the message unchanged. object must be a valid JSON-RPC message.
func (k *keptNumbers) replace(object []byte, id json.RawMessage, method string) []byte {
	lost := isLost(id)
	deep := method == "notifications/cancelled" || bytes.Contains(object, []byte(`"progressToken"`))
	if !lost && !deep {
		return object
	}
	var m, params, meta map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return object
	}
	if lost {
		m["id"] = k.keep(id)
	}
	if deep && json.Unmarshal(m["params"], &params) == nil {
		before := len(*k)
		if isLost(params["requestId"]) && method == "notifications/cancelled" {
			params["requestId"] = k.keep(params["requestId"])
		}
		if json.Unmarshal(params["_meta"], &meta) == nil && isLost(meta["progressToken"]) {
			meta["progressToken"] = k.keep(meta["progressToken"])
			params["_meta"] = plainObject(meta)
		}
		if len(*k) > before {
			m["params"] = plainObject(params)
			lost = true
		}
	}
	if !lost {
		return object
	}
	return plainObject(m)
}

// plainObject encodes an object.
func plainObject(m map[string]json.RawMessage) []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // all values come from a decoder
	}
	return text
}

// restore puts the numbers back into a part of an answer, replacing the strings that the SDK got.
func (k keptNumbers) restore(text []byte) []byte {
	for _, number := range k {
		text = bytes.ReplaceAll(text, strconv.AppendQuote(nil, numberMark+string(number)), number)
	}
	return text
}
