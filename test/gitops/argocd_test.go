// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gitops

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/hack/node/image"
)

// One story: the operator comes, then a shop that syncs, changes and goes.
func TestArgoCD(t *testing.T) {
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the chart is synced as the document says", theChart},
		{"QueueWorkers become Synced and Healthy", theShop},
		{"a new image is Progressing until the last old worker has drained", aRollout},
		{"an autoscaler's replicas are no difference where Git has none", replicasOutsideGit},
		{"a broken chain shows the API server's refusal", aBrokenChain},
		{"what only the webhook sees shows its refusal", aSharedQueue},
		{"an image that cannot be pulled is Degraded", aMissingImage},
		{"replicas in Git yield where the Application looks away", replicasInGit},
		{"idle time writes nothing and refreshes no more than it must", idleTime},
		{"what is pruned drains first", pruned},
	} {
		if !t.Run(part.name, part.run) {
			return // the story goes on from there
		}
	}
}

// theChart applies the document's Application. Only what names somebody's own
// is another: the repository and the image.
func theChart(t *testing.T) {
	patch := example(t, "sh", "argocd-cm.yaml")
	mustKubectl(t, "", strings.Fields(strings.TrimPrefix(patch, "kubectl "))...)

	operator, tag, _ := strings.Cut(image.Name("operator"), ":")
	text := replaced(t, example(t, "yaml", "argocd.argoproj.io/sync-wave"),
		"https://git.example/platform.git", suite.git.url(),
		"{repository: registry.example/queueworker/operator}", "{repository: "+operator+", tag: "+tag+"}")
	mustKubectl(t, text, "apply", "-f", "-")
	becomes(t, "queueworker-operator", "Synced", "Healthy")

	// What the manager writes is no difference: neither now nor later.
	seen := record(t, "queueworker-operator")
	eventually(t, "the manager has registered its authority", func() error {
		authority, err := kubectl(t.Context(), "", "get", "validatingwebhookconfiguration", "queueworker-operator",
			"-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
		if err == nil && authority == "" {
			err = errors.New("none")
		}
		return err
	})
	compared(t, "queueworker-operator", 2)
	seen.never(t, "OutOfSync", "Degraded", "Missing")
}

// compared waits until an Application was compared so many times more.
func compared(t *testing.T, name string, times int) {
	t.Helper()
	before := refreshes(t, name)
	eventually(t, fmt.Sprintf("%s is compared %d times", name, times), func() error {
		if n := len(refreshes(t, name)) - len(before); n < times {
			return fmt.Errorf("%d times", n)
		}
		return nil
	})
	time.Sleep(2 * time.Second) // what it found is written
}

func theShop(t *testing.T) {
	push(t, shop+"/mail.yaml", spec{replicas: "replicas: 0", timeouts: base.timeouts, image: workerImage, version: "1"}.manifest("mail", "mail"))
	base.pushed(t)
	mustKubectl(t, shopApplication("CreateNamespace=true"), "apply", "-f", "-")
	a := becomes(t, shop, "Synced", "Healthy")
	if got := a.of("payments"); got != (health{"Healthy", "1 of 1 worker available."}) {
		t.Errorf("payments is shown as %+v", got)
	}
	if got := a.of("mail"); got.Status != "Healthy" || !strings.HasPrefix(got.Message, "No worker is wanted") {
		t.Errorf("mail is shown as %+v", got)
	}
	autoscaled(t, 2)
	becomes(t, shop, "Synced", "Healthy")
}

func aRollout(t *testing.T) {
	seen := record(t, shop)
	next := base
	next.image = nextImage
	next.pushed(t)
	drains(t, 2)
	eventually(t, "the Deployment says that it is done", func() error {
		_, err := kubectl(t.Context(), "", "-n", shop, "rollout", "status", "deployment/payments", "--timeout=5s")
		return err
	})
	progressing(t, "2 workers of an older template")
	_, draining := workerPods(t)
	finish(t, draining[0])
	progressing(t, "1 worker of an older template")
	compared(t, shop, 1)
	progressing(t, "1 worker of an older template")
	finish(t, draining[1])
	becomes(t, shop, "Synced", "Healthy")
	seen.never(t, "Degraded", "Missing", "Unknown")
	t.Logf("sync and health on the way: %q", seen.all())
	if n := replicas(t); n != 2 {
		t.Errorf("the sync set the autoscaler's replicas to %d", n)
	}
}

// progressing waits for what the Application says of a rollout.
func progressing(t *testing.T, message string) {
	t.Helper()
	a := becomes(t, shop, "Synced", "Progressing")
	eventually(t, "payments is Progressing: "+message, func() error {
		a = get(t, shop)
		if got := a.of("payments"); got.Status != "Progressing" || !strings.HasPrefix(got.Message, message) {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
	if a.Status.Health.Status != "Progressing" {
		t.Errorf("the Application is %s", a.Status.Health.Status)
	}
}

func replicasOutsideGit(t *testing.T) {
	seen := record(t, shop)
	autoscaled(t, 3)
	compared(t, shop, 2)
	becomes(t, shop, "Synced", "Healthy")
	if n := replicas(t); n != 3 {
		t.Errorf("%d replicas, the autoscaler wants 3", n)
	}
	seen.never(t, "OutOfSync", "Degraded")
	autoscaled(t, 2)
	drains(t, 1)
	becomes(t, shop, "Synced", "Healthy") // a scaled-down worker drains beside the wanted ones
	finishAll(t)
}

// refused waits for a sync that says why it fails, and checks that the running
// workers are as before.
func refused(t *testing.T, texts ...string) {
	t.Helper()
	before, _ := workerPods(t)
	head := suite.git.head(t)
	var a application
	shown := ""
	eventually(t, "the sync says "+texts[0], func() error {
		a = get(t, shop)
		operation := a.Status.OperationState
		shown = operation.Message
		for _, r := range operation.SyncResult.Resources {
			shown += "\n" + r.Kind + " " + r.Name + ": " + r.Message
		}
		if operation.SyncResult.Revision != head || operation.Phase == "Succeeded" || !strings.Contains(shown, texts[0]) {
			return fmt.Errorf("%+v", operation)
		}
		return nil
	})
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			t.Errorf("the Application does not show %q, but\n%s", text, shown)
		}
	}
	t.Logf("sync %s, health %s, shown: %s", a.Status.Sync.Status, a.Status.Health.Status, shown)
	if after, draining := workerPods(t); len(after) != len(before) || len(draining) != 0 {
		t.Errorf("%d workers, %d of them draining; before there were %d", len(after), len(draining), len(before))
	}
}

func aBrokenChain(t *testing.T) {
	broken := base
	broken.image, broken.timeouts = nextImage, "jobSeconds: 60, retryAfterSeconds: 30"
	broken.pushed(t)
	refused(t, "job-not-below-retry-after: jobSeconds 60 must be below retryAfterSeconds 30",
		"a second worker runs the same job", "set retryAfterSeconds to 68")
	broken.timeouts = base.timeouts
	broken.pushed(t)
	becomes(t, shop, "Synced", "Healthy")
}

// aSharedQueue lets mail poll the table's queue of payments with a reservation
// that is shorter than one of its jobs.
func aSharedQueue(t *testing.T) {
	mail := spec{replicas: "replicas: 0", timeouts: "jobSeconds: 10, retryAfterSeconds: 25", image: workerImage, version: "1"}
	push(t, shop+"/mail.yaml", mail.manifest("mail", "payments"))
	refused(t, "admission webhook", "shared-queue-shorter-reservation: ", "payments")
	push(t, shop+"/mail.yaml", spec{replicas: "replicas: 0", timeouts: base.timeouts, image: workerImage, version: "1"}.manifest("mail", "mail"))
	becomes(t, shop, "Synced", "Healthy")
}

func aMissingImage(t *testing.T) {
	before, _ := workerPods(t)
	next := base
	next.image = missingImage
	next.pushed(t)
	a := becomes(t, shop, "Synced", "Degraded")
	got := a.of("payments")
	t.Logf("shown: %s", got.Message)
	if got.Status != "Degraded" || !strings.HasPrefix(got.Message, "ImageUnavailable: ") || !strings.Contains(got.Message, missingImage) {
		t.Errorf("payments is shown as %+v", got)
	}
	if _, draining := workerPods(t); len(draining) != 0 {
		t.Errorf("%d of %d older workers were asked to stop", len(draining), len(before))
	}
	next.image = nextImage
	next.pushed(t)
	becomes(t, shop, "Synced", "Healthy")
}

// replicasInGit shows first what happens without the document's settings.
func replicasInGit(t *testing.T) {
	inGit := base
	inGit.image, inGit.replicas = nextImage, "replicas: 1"
	inGit.pushed(t)
	eventually(t, "the sync has set the autoscaler's replicas back", func() error {
		if n := replicas(t); n != 1 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	drains(t, 1)
	finishAll(t)
	becomes(t, shop, "Synced", "Healthy")

	// A patch, since Argo CD writes the same object.
	ignore := example(t, "yaml", "/spec/replicas")
	options := []string{"CreateNamespace=true"}
	if !strings.Contains(document(t), "`RespectIgnoreDifferences=true`") {
		t.Error("the document does not name the sync option")
	}
	options = append(options, "RespectIgnoreDifferences=true")
	mustKubectl(t, shopApplication(strings.Join(options, ", "), indented(ignore)), "apply", "-f", "-")
	autoscaled(t, 2)
	compared(t, shop, 2)
	becomes(t, shop, "Synced", "Healthy")
	seen := record(t, shop)
	inGit.version = "2"
	inGit.pushed(t)
	drains(t, 2)
	finishAll(t)
	becomes(t, shop, "Synced", "Healthy")
	if n := replicas(t); n != 2 {
		t.Errorf("%d replicas, the autoscaler wants 2", n)
	}
	seen.never(t, "Degraded")
}

func pruned(t *testing.T) {
	push(t, shop+"/payments.yaml", "")
	drains(t, 2)
	a := becomes(t, shop, "OutOfSync", "Progressing")
	t.Logf("while it drains: %+v", a.Status.OperationState)
	_, draining := workerPods(t)
	finish(t, draining[0])
	compared(t, shop, 1)
	if _, err := suite.objects.Resource(queueWorkers).Namespace(shop).Get(t.Context(), "payments", metav1.GetOptions{}); err != nil {
		t.Errorf("the QueueWorker went before its last worker: %v", err)
	}
	finish(t, draining[1])
	becomes(t, shop, "Synced", "Healthy")
	_, err := suite.objects.Resource(queueWorkers).Namespace(shop).Get(t.Context(), "payments", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the QueueWorker is not gone: %v", err)
	}
}
