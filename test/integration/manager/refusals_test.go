// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A manager that cannot work says why in one line and ends with 1, whether a
// person or a Deployment started it.
func cannotStart() {
	refuses := func(want string, args ...string) {
		GinkgoHelper()
		code, told := runToEnd(args...)
		Expect(code).To(Equal(1))
		Expect(told).To(HaveLen(1), strings.Join(told, "\n"))
		Expect(told[0]).To(And(HavePrefix("manager: "), ContainSubstring(want)))
	}

	It("misses the CRD", func() {
		refuses("the CRD queueworkers.queueworker.dev is not installed: install it with the operator's manifests")
	})

	It("finds a CRD older than itself", func(ctx SpecContext) {
		old := definition()
		delete(old.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties, "terminatingReplicas")
		Expect(k8s.Create(ctx, old)).To(Succeed())
		refuses("does not know status.terminatingReplicas: update it with this version's manifests")

		By("starting on the current one")
		installed := &apiextensionsv1.CustomResourceDefinition{}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(old), installed)).To(Succeed())
		update := client.MergeFrom(installed.DeepCopy())
		installed.Spec = definition().Spec
		Expect(k8s.Patch(ctx, installed, update)).To(Succeed())
		m := startManager()
		Eventually(m.alive).Should(Equal(200))
		code, _ := m.stop()
		Expect(code).To(BeZero())
	})

	It("has a port that is taken", func() {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = listener.Close() }()
		address := listener.Addr().String()
		for _, endpoint := range []string{"webhook", "metrics", "health"} {
			refuses(endpoint+".bindAddress "+address+": the port is in use", "--"+endpoint+"-bind-address="+address)
		}
	})

	It("misses the certificate that was promised", func() {
		directory := GinkgoT().TempDir()
		refuses("webhook.certificates.directory "+directory, "--config="+configFile("webhook: {certificates: {mode: Provided, directory: "+directory+"}}"))
	})

	It("has a namespace that does not exist", func() {
		refuses(`the operator's own namespace "nowhere" does not exist`, "--namespace=nowhere", "--kubeconfig="+controlPlane.KubeconfigPath())
	})

	It("has no permission", func(ctx SpecContext) {
		refuses("no permission: customresourcedefinitions", "--kubeconfig="+kubeconfigOf(ctx, "nobody"))
		refuses("no permission: leases", "--namespace=default")
	})

	It("has a token that nobody knows", func() {
		refuses("does not accept the credentials", "--kubeconfig="+changedKubeconfig(func(c *clientcmdapi.Config) {
			for _, user := range c.AuthInfos {
				user.Token = "made-up"
			}
		}))
	})

	It("does not reach the API server", func() {
		refuses("cannot reach the API server https://"+"127.0.0.1:1", "--kubeconfig="+changedKubeconfig(func(c *clientcmdapi.Config) {
			for _, server := range c.Clusters {
				server.Server = "https://127.0.0.1:1"
			}
		}))
	})
}

func changedKubeconfig(change func(*clientcmdapi.Config)) string {
	GinkgoHelper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	change(config)
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}

func configFile(fields string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "config.yaml")
	Expect(os.WriteFile(path, []byte("apiVersion: config.queueworker.dev/v1alpha1\nkind: ManagerConfig\n"+fields+"\n"), 0o600)).To(Succeed())
	return path
}
