// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/hack/controlplane/cluster"
	"github.com/queueworker/operator/hack/internal/leftovers"
)

const namespace = metav1.NamespaceDefault

func TestCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c, err := cluster.Start(t.Context(), cluster.Options{Nodes: 2, TerminatingFor: 2 * time.Second, Dir: dir, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			_ = c.Stop()
		}
	}()
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())

	t.Run("a Deployment gets ready", func(t *testing.T) { deploymentGetsReady(t, client) })
	t.Run("deleted pods stay as long as wanted", func(t *testing.T) { podsTerminate(t, client) })
	t.Run("a manual pod is left to the test", func(t *testing.T) { manualPodStaysPending(t, client) })
	t.Run("rights are enforced", func(t *testing.T) { rightsAreEnforced(t, client, c.RESTConfig()) })
	t.Run("the API server comes back with its data", func(t *testing.T) { apiServerComesBack(t, c, client) })

	t.Run("etcd comes back with its data", func(t *testing.T) { etcdComesBack(t, c, client) })

	t.Run("its port cannot be shared", func(t *testing.T) { portIsTaken(t, c.RESTConfig().Host) })

	select {
	case err := <-c.Failed():
		t.Errorf("nothing has failed, yet Failed says: %v", err)
	default:
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	stopped = true
	leftovers.None(t, dir)
	if err := c.Stop(); err != nil {
		t.Errorf("the second Stop: %v", err)
	}
}

func deploymentGetsReady(t *testing.T, client kubernetes.Interface) {
	labels := map[string]string{"app": "ready"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "ready"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{
					{Name: "first", Image: "registry.example/first"},
					{Name: "beside", Image: "registry.example/beside", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)},
				},
				Containers: []corev1.Container{{Name: "worker", Image: "registry.example/worker"}},
			}},
		},
	}
	if _, err := client.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "ready", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 3 {
			err = fmt.Errorf("%d of 3 are available", d.Status.AvailableReplicas)
		}
		return err
	})
}

func podsTerminate(t *testing.T, client kubernetes.Interface) {
	pods, names := client.CoreV1().Pods(namespace), []string{"default-stay", "longer-stay"}
	createPod(t, client, "default-stay", nil)
	createPod(t, client, "longer-stay", map[string]string{cluster.TerminatingForAnnotation: "8s"})
	for _, name := range names {
		eventually(t, func(ctx context.Context) error { return podPhase(ctx, client, name, corev1.PodRunning) })
	}
	start := time.Now()
	for _, name := range names {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	took := map[string]time.Duration{}
	eventually(t, func(ctx context.Context) error {
		for _, name := range names {
			_, err := pods.Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) && took[name] == 0 {
				took[name] = time.Since(start)
			}
		}
		if len(took) < 2 {
			return fmt.Errorf("gone so far: %v", took)
		}
		return nil
	})
	if took["default-stay"] < time.Second || took["default-stay"] > took["longer-stay"]-time.Second {
		t.Errorf("wanted about 2s and 8s, got %v", took)
	}
}

func manualPodStaysPending(t *testing.T, client kubernetes.Interface) {
	createPod(t, client, "manual", map[string]string{cluster.ManualAnnotation: "true"})
	createPod(t, client, "later", nil)
	eventually(t, func(ctx context.Context) error { return podPhase(ctx, client, "later", corev1.PodRunning) })
	if err := podPhase(t.Context(), client, "manual", corev1.PodPending); err != nil {
		t.Error(err)
	}
}

// rightsAreEnforced also shows that OwnerReferencesPermissionEnforcement is on.
func rightsAreEnforced(t *testing.T, client kubernetes.Interface, config *rest.Config) {
	owner, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: "somebody"}
	somebody := kubernetes.NewForConfigOrDie(config)
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
	}}}}
	if _, err := somebody.CoreV1().Secrets(namespace).Create(t.Context(), owned, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without rights: wanted Forbidden, got %v", err)
	}
	grantSecrets(t, client, "somebody")
	eventually(t, func(ctx context.Context) error {
		_, err := somebody.CoreV1().Secrets(namespace).Create(ctx, owned, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "blockOwnerDeletion") {
			return fmt.Errorf("wanted blockOwnerDeletion to be refused, got %w", err)
		}
		return nil
	})
}

func apiServerComesBack(t *testing.T, c *cluster.Cluster, client kubernetes.Interface) {
	if err := c.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "owner", metav1.GetOptions{}); err == nil {
		t.Error("a killed API server answers")
	}
	if err := c.KillAPIServer(); err == nil {
		t.Error("killing it twice should say that it is not running")
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "owner", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	// The other components have found it again.
	createPod(t, client, "after-restart", nil)
	eventually(t, func(ctx context.Context) error { return podPhase(ctx, client, "after-restart", corev1.PodRunning) })
}

func etcdComesBack(t *testing.T, c *cluster.Cluster, client kubernetes.Interface) {
	if err := c.KillEtcd(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "owner", metav1.GetOptions{}); err == nil {
		t.Error("the API server answers without etcd")
	}
	if err := c.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "owner", metav1.GetOptions{})
		return err
	})
}

func TestFailedStartLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: dir, Log: t.Output(), ExtraAPIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		_ = c.Stop()
		t.Fatal("started with an unknown flag")
	}
	if text := err.Error(); !strings.Contains(text, "kube-apiserver ended by itself") || !strings.Contains(text, "no-such-flag") || strings.Contains(text, "\n") {
		t.Errorf("wanted one line that names the program and its reason, got: %s", text)
	}
	leftovers.None(t, dir)
}

func TestInterruptedStartLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil && len(leftovers.Processes(dir)) < 3 { // janitor, etcd, API server
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Log: t.Output()}); err == nil {
		_ = c.Stop()
		t.Fatal("started although interrupted")
	}
	leftovers.None(t, dir)
}

func TestBusyPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	portIsTaken(t, "http://"+listener.Addr().String())
}

func portIsTaken(t *testing.T, address string) {
	t.Helper()
	host, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(host.Port())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	c, err := cluster.Start(t.Context(), cluster.Options{Dir: dir, Port: port, Log: t.Output()})
	if err == nil {
		_ = c.Stop()
		t.Fatal("started on a busy port")
	}
	if want := fmt.Sprintf("port %d is in use", port); !strings.Contains(err.Error(), want) {
		t.Errorf("wanted %q, got: %v", want, err)
	}
	leftovers.None(t, dir)
}

func TestUsersClusterIsLeftAlone(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(cluster.TestKubeconfigEnv, kubeconfig)
	c, err := cluster.UseOrStart(t.Context(), cluster.Options{Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Foreign() || c.KubeconfigPath() != kubeconfig || c.RESTConfig().Host != "https://127.0.0.1:1" {
		t.Errorf("not the user's cluster: %v %s %s", c.Foreign(), c.KubeconfigPath(), c.RESTConfig().Host)
	}
	if err := c.RestartAPIServer(t.Context()); err == nil {
		t.Error("restarted the user's API server")
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Error(err)
	}
}

func TestAmbientKubeconfigIsIgnored(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "production"))
	t.Setenv(cluster.TestKubeconfigEnv, "")
	c, err := cluster.UseOrStart(t.Context(), cluster.Options{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop() }()
	if c.Foreign() || !strings.HasPrefix(c.RESTConfig().Host, "https://127.0.0.1:") {
		t.Errorf("uses %s", c.RESTConfig().Host)
	}
}

// eventually gives the simulated cluster two minutes, far more than it needs.
func eventually(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	last := fmt.Errorf("not tried")
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("not within two minutes: %v", last)
	}
}

func createPod(t *testing.T, client kubernetes.Interface, name string, annotations map[string]string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "worker", Image: "registry.example/worker"}}},
	}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podPhase(ctx context.Context, client kubernetes.Interface, name string, want corev1.PodPhase) error {
	pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && pod.Status.Phase != want {
		err = fmt.Errorf("pod %s is %s, wanted %s", name, pod.Status.Phase, want)
	}
	return err
}
