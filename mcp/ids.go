package mcp

import (
	"bytes"
	crand "crypto/rand"
	"encoding/json"
	"strconv"
)

// The SDK decodes JSON-RPC numbers as float64 and converts ids to int64. It would therefore answer the id 2^53+1 with
// 2^53, and 1.5 with 1. If the SDK would alter a number, the server passes a string to the SDK instead, and puts the
// number back into the response. This applies to ids, to the id in a cancellation, and to progress tokens.

// numberMark is the prefix of the strings that replace numbers. Clients cannot know this prefix, so the server never
// mistakes text from a client for such a string.
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

// keep stores a number and returns the string that replaces it.
func (k *keptNumbers) keep(number json.RawMessage) json.RawMessage {
	*k = append(*k, number)
	return strconv.AppendQuote(nil, numberMark+string(number))
}

// replace returns a message in which strings replace the numbers that the SDK would alter. If there are no such
// numbers, it returns the message unchanged. The parameter object must be a valid JSON-RPC message.
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
		panic(err) // cannot happen: all values come from a decoder
	}
	return text
}

// restore replaces the strings in a part of a response with the original numbers.
func (k keptNumbers) restore(text []byte) []byte {
	for _, number := range k {
		text = bytes.ReplaceAll(text, strconv.AppendQuote(nil, numberMark+string(number)), number)
	}
	return text
}
