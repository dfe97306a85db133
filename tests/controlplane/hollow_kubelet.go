package main

import (
	"github.com/spf13/cobra"
)

func newHollowKubeletCommand() *cobra.Command {
	return &cobra.Command{Use: "hollow-kubelet"}
}
