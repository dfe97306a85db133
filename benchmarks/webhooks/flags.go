package webhooks

import (
	"flag"
	"strings"
)

// Flags of both webhooks.
type Flags struct {
	Port         int
	Certificates string
	Namespaces   Namespaces
}

// Parse reads the command line.
func Parse() Flags {
	port := flag.Int("port", 0, "port on 127.0.0.1")
	certificates := flag.String("certificates", "", "directory of tls.crt and tls.key")
	production := flag.String("production", "", "namespaces, by commas, that have the label environment=production")
	flag.Parse()
	namespaces := Namespaces{}
	for _, name := range strings.Split(*production, ",") {
		namespaces[name] = map[string]string{"environment": "production"}
	}
	return Flags{*port, *certificates, namespaces}
}
