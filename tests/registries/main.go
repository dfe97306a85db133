// registries serves an image registry on loopback, in memory: with the referrers API ("referrers",
// go-containerregistry's) or without it ("tags", the distribution project's).
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
)

const distribution = `
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {inmemory: {}}
http: {addr: "%s", secret: "test"}
`

func main() {
	kind, address := os.Args[1], os.Args[2]
	log.Fatal(serve(kind, address))
}

func serve(kind, address string) error {
	if kind == "referrers" {
		return http.ListenAndServe(address, ggcr.New(ggcr.WithReferrersSupport(true)))
	}
	config, err := configuration.Parse(strings.NewReader(fmt.Sprintf(distribution, address)))
	if err != nil {
		return err
	}
	server, err := registry.NewRegistry(context.Background(), config)
	if err != nil {
		return err
	}
	return server.ListenAndServe()
}
