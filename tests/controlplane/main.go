// Command controlplane is one binary with every part of a small Kubernetes: the first argument names the part.
//
// Each part runs as a process of its own (Kubernetes allows one of each per process), so tests can kill, stop and
// restart any of them. Linked as `etcd`, `kube-apiserver` or `kubectl`, it also serves envtest.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "time/tzdata"
)

var parts = map[string]func() *cobra.Command{
	"etcd":                    newEtcdCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"hollow-kubelet":          newHollowKubeletCommand,
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args
	if _, linked := parts[name]; !linked && len(os.Args) > 1 {
		name, args = os.Args[1], os.Args[1:]
	}
	part, known := parts[name]
	if !known {
		names := make([]string, 0, len(parts))
		for each := range parts {
			names = append(names, each)
		}
		slices.Sort(names)
		fmt.Fprintf(os.Stderr, "controlplane: %q is not one of %v\n", name, names)
		os.Exit(2)
	}
	os.Args = append([]string{name}, args[1:]...)
	if name == "kubectl" {
		kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()))
		return
	}
	os.Exit(cli.Run(part()))
}
