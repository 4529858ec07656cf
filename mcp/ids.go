package mcp

import (
	"bytes"
	crand "crypto/rand"
	"encoding/json"
	"strconv"
)

// The SDK decodes JSON-RPC numbers as float64 and casts ids to int64, so it would answer 2^53+1 with 2^53, and 1.5 with
// 1. Therefore the server gives the SDK a string in place of a number that the SDK would change, and puts the number
// back into the answer. This applies to ids, the id in a cancellation, and progress tokens.

// numberMark begins the strings that replace numbers. No client can know the mark, so the server never mistakes a
// client's text for such a string.
var numberMark = "number-" + crand.Text() + ":"

// keptNumbers are the numbers of a request that the SDK gets as strings.
type keptNumbers []json.RawMessage

// isLost reports whether the SDK would change a number.
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

// replace returns a message with strings in place of the numbers that the SDK would change. If there are none, it
// returns the message itself. object is a valid JSON-RPC message.
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
		panic(err) // its values were decoded
	}
	return text
}

// restore returns a part of an answer with the numbers in place of their strings.
func (k keptNumbers) restore(text []byte) []byte {
	for _, number := range k {
		text = bytes.ReplaceAll(text, strconv.AppendQuote(nil, numberMark+string(number)), number)
	}
	return text
}
