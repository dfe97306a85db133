// A client of NATS JetStream: `nats publish TEXT` stores a message in a stream on disk and waits for
// its acknowledgement, `nats receive` prints the oldest one and acknowledges it. The server is NATS_URL.
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

const subject = "orders"

func main() {
	connection, err := nats.Connect(os.Getenv("NATS_URL"))
	check(err)
	defer connection.Close()
	stream, err := connection.JetStream(nats.MaxWait(10 * time.Second))
	check(err)
	if os.Args[1] == "publish" {
		_, err = stream.AddStream(&nats.StreamConfig{Name: subject, Subjects: []string{subject}, Storage: nats.FileStorage})
		check(err)
		_, err = stream.Publish(subject, []byte(os.Args[2]))
		check(err)
		return
	}
	subscription, err := stream.PullSubscribe(subject, "shop")
	check(err)
	messages, err := subscription.Fetch(1)
	check(err)
	fmt.Println(string(messages[0].Data))
	check(messages[0].AckSync())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
