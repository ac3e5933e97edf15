// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// serviceRange holds the addresses of Services.
const serviceRange = "10.0.0.0/16"

var firstServiceAddress = net.IPv4(10, 0, 0, 1)

// credentials are the files that let the parts trust each other. All are new for each cluster.
type credentials struct {
	certFile, keyFile     string // of the API server, self-signed
	serviceAccountKeyFile string
	tokenFile             string // the administrator's token
}

// writeCredentials also writes the kubeconfig, the one file that users see.
func writeCredentials(dir string, apiServerPort int, nodeAddress net.IP) (credentials, error) {
	c := credentials{
		certFile:              filepath.Join(dir, "apiserver.crt"),
		keyFile:               filepath.Join(dir, "apiserver.key"),
		serviceAccountKeyFile: filepath.Join(dir, "serviceaccount.key"),
		tokenFile:             filepath.Join(dir, "tokens.csv"),
	}
	addresses, names := []net.IP{net.IPv4(127, 0, 0, 1)}, []string(nil)
	if nodeAddress != nil {
		// Pods use the Service kubernetes, which has the first address of the range.
		addresses, names = append(addresses, nodeAddress, firstServiceAddress), []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", addresses, names)
	if err != nil {
		return c, fmt.Errorf("making the API server's certificate: %w", err)
	}
	serviceAccountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return c, fmt.Errorf("making the service accounts' key: %w", err)
	}
	token := rand.Text()
	files := map[string][]byte{
		c.certFile:              cert,
		c.keyFile:               key,
		c.serviceAccountKeyFile: serviceAccountKey,
		c.tokenFile:             []byte(token + `,admin,admin,"system:masters"` + "\n"),
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return c, err
		}
	}
	return c, clientcmd.WriteToFile(kubeconfig(apiServerPort, cert, token), filepath.Join(dir, "kubeconfig"))
}

func kubeconfig(port int, cert []byte, token string) clientcmdapi.Config {
	const name = "queueworker-controlplane"
	config := *clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   fmt.Sprintf("https://127.0.0.1:%d", port),
		CertificateAuthorityData: cert,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: "default"}
	config.CurrentContext = name
	return config
}
