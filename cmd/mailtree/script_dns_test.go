package main

import (
	"net"
	"strings"

	"github.com/miekg/dns"
	"github.com/rogpeppe/go-internal/testscript"
)

// cmdDNS implements `dns FILE`. It serves the DNS records in the file, which are the lines that contain " IN ", and
// makes the program use that name server. FILE may be stdout, the output of the last command. A second dns replaces
// the first.
func cmdDNS(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: dns FILE")
	}
	records := map[string][]dns.RR{}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if !strings.Contains(line, " IN ") {
			continue
		}
		r, err := dns.NewRR(line)
		ts.Check(err)
		name := strings.ToLower(r.Header().Name)
		records[name] = append(records[name], r)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	ts.Check(err)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		all := records[strings.ToLower(q.Question[0].Name)]
		for _, r := range all {
			if r.Header().Rrtype == q.Question[0].Qtype {
				answer.Answer = append(answer.Answer, r)
			}
		}
		if len(all) == 0 {
			answer.Rcode = dns.RcodeNameError
		}
		w.WriteMsg(answer) // an error means that the client is gone and does not need the response
	})}
	go server.ActivateAndServe()
	ts.Defer(func() { conn.Close() })
	ts.Setenv("GATEWAY_RESOLVER", conn.LocalAddr().String())
}
