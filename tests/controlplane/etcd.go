package main

import (
	"context"
	"fmt"
	"net/url"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// newEtcdCommand runs one etcd member with the flags that envtest passes.
func newEtcdCommand() *cobra.Command {
	var dataDir, clientURL, peerURL, advertised string
	var noFsync bool
	command := &cobra.Command{
		Use:          "etcd",
		Short:        "one etcd member",
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return runEtcd(ctx, dataDir, clientURL, peerURL, advertised, noFsync)
		},
	}
	flags := command.Flags()
	flags.StringVar(&dataDir, "data-dir", "", "where the member keeps its data")
	flags.StringVar(&clientURL, "listen-client-urls", "http://127.0.0.1:2379", "where clients connect")
	flags.StringVar(&peerURL, "listen-peer-urls", "http://127.0.0.1:2380", "where peers would connect")
	flags.StringVar(&advertised, "advertise-client-urls", "", "what clients are told (default: where they connect)")
	flags.BoolVar(&noFsync, "unsafe-no-fsync", false, "do not wait for the disk: test data only")
	return command
}

func runEtcd(ctx context.Context, dataDir, clientURL, peerURL, advertised string, noFsync bool) error {
	if advertised == "" {
		advertised = clientURL
	}
	addresses := make([]url.URL, 0, 3)
	for _, text := range []string{clientURL, peerURL, advertised} {
		address, err := url.Parse(text)
		if err != nil {
			return fmt.Errorf("etcd: %q is no URL: %w", text, err)
		}
		addresses = append(addresses, *address)
	}
	config := embed.NewConfig()
	config.Dir = dataDir
	config.LogLevel = "error"
	config.UnsafeNoFsync = noFsync
	config.ListenClientUrls, config.AdvertiseClientUrls = addresses[:1], addresses[2:]
	config.ListenPeerUrls, config.AdvertisePeerUrls = addresses[1:2], addresses[1:2]
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	member, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer member.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-member.Err():
		return fmt.Errorf("etcd: %w", err)
	}
}
