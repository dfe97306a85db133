// Command load posts one body again and again over TLS, and prints what that took as JSON. It connects first, says
// "ready", and begins when it is told to by a line (or the end) of standard input.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	urls        = flag.String("url", "", "https://host:port; several, by commas, share the connections, as those of a Service do")
	paths       = flag.String("paths", "/validate", "paths, by commas, that each body goes to, one after another")
	trust       = flag.String("trust", "", "file of the certificate authority")
	file        = flag.String("body", "", "file of the body")
	connections = flag.Int("connections", 8, "connections")
	requests    = flag.Int("requests", 1000, "bodies to send")
	rate        = flag.Float64("rate", 0, "bodies a second, whatever becomes of the earlier ones; 0: one after another")
)

type result struct {
	Seconds   float64   `json:"seconds"`
	Errors    int64     `json:"errors"`
	Latencies []float64 `json:"latencies"` // milliseconds, of each request from when it was due
}

func main() {
	flag.Parse()
	body, err := os.ReadFile(*file)
	check(err)
	authority, err := os.ReadFile(*trust)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	clients := make([]*http.Client, *connections)
	for index := range clients {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxConnsPerHost: 1} // no HTTP/2, as the API server
		clients[index] = &http.Client{Transport: transport, Timeout: 30 * time.Second}
	}
	var errors atomic.Int64
	latencies := make([][]float64, *connections)
	bases := strings.Split(*urls, ",")
	base := func(index int) string { return bases[index%len(bases)] }
	each(func(index int) {
		if err := post(clients[index], base(index), body); err != nil {
			log.Fatal(err)
		}
	})
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	began := time.Now()
	var taken atomic.Int64
	each(func(index int) {
		for number := taken.Add(1) - 1; number < int64(*requests); number = taken.Add(1) - 1 {
			due := time.Now()
			if *rate > 0 {
				due = began.Add(time.Duration(float64(number) / *rate * float64(time.Second)))
				time.Sleep(time.Until(due))
			}
			if err := post(clients[index], base(index), body); err != nil {
				errors.Add(1)
			}
			latencies[index] = append(latencies[index], time.Since(due).Seconds()*1000)
		}
	})
	answer := result{time.Since(began).Seconds(), errors.Load(), nil}
	for _, some := range latencies {
		answer.Latencies = append(answer.Latencies, some...)
	}
	check(json.NewEncoder(os.Stdout).Encode(answer))
}

func each(do func(int)) {
	var group sync.WaitGroup
	for index := range *connections {
		group.Go(func() { do(index) })
	}
	group.Wait()
}

func post(client *http.Client, base string, body []byte) error {
	for path := range strings.SplitSeq(*paths, ",") {
		response, err := client.Post(base+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s %v", path, response.Status, err)
		}
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
