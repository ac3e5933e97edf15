// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	good   = "kubectl apply -f config/samples/payments.yaml"
	broken = "kubectl apply -f config/samples/invalid/job-not-below-retry-after.yaml"
	shared = "kubectl apply -f config/samples/invalid/shared-queue-shorter-reservation.yaml"
	first  = "sed '/^---$/,$d' config/samples/invalid/shared-queue-shorter-reservation.yaml | kubectl apply -f -"
)

func (d *demo) applyGood() error {
	d.title("A good QueueWorker becomes a Deployment")
	if _, err := d.show(good); err != nil {
		return err
	}
	if _, err := d.show("kubectl wait qw/payments --for=condition=Ready --timeout=120s"); err != nil {
		return err
	}
	table, err := d.show("kubectl get qw")
	if err != nil {
		return err
	}
	if err := d.check(hasWords(table, "payments 3/3 MonitorStarting 20<30<90<100 payments,default"), "3 of 3 workers are available, and the chain is 20 < 30 < 90 < 100"); err != nil {
		return err
	}
	command, err := d.show(`kubectl get deployment payments -o jsonpath='{.spec.template.spec.containers[0].args}{"\n"}'`)
	if err != nil {
		return err
	}
	const want = `["php","artisan","queue:work","redis","--queue=payments,default","--timeout=30","--tries=3","--backoff=10,60","--sleep=3","--memory=128"]`
	if err := d.check(strings.TrimSpace(command) == want, "the command is rendered from the spec: --timeout is jobSeconds"); err != nil {
		return err
	}
	grace, err := d.show(`kubectl get deployment payments -o jsonpath='{.spec.template.spec.terminationGracePeriodSeconds}{"\n"}'`)
	if err != nil {
		return err
	}
	if err := d.check(strings.TrimSpace(grace) == "100", "the grace period is derived: max(90, 12 + 30 + 20) + 10"); err != nil {
		return err
	}
	again, err := d.show(good)
	if err != nil {
		return err
	}
	return d.check(strings.HasSuffix(strings.TrimSpace(again), "unchanged"), "applying the same file again changes nothing")
}

func (d *demo) refuseBroken() error {
	d.title("A broken chain is refused")
	refusal, err := d.showRefused(broken)
	if err != nil {
		return err
	}
	return d.checkRefusal(refusal, "the refusal is the text that README.md quotes")
}

func (d *demo) checkRefusal(refusal, claim string) error {
	readme, err := os.ReadFile(filepath.Join(d.root, "README.md"))
	if err != nil {
		return err
	}
	quoted := strings.Contains(string(readme), "```text\n"+refusal+"```")
	return d.check(refusal != "" && quoted, claim)
}

// refuseShared shows what only the webhook can see.
func (d *demo) refuseShared() error {
	d.title("The webhook also sees other workers, and warns about risks")
	d.say("Two workers share a queue of one database; the second would take jobs that the first still runs:")
	admitted, err := d.show(first)
	if err != nil {
		return err
	}
	if err := d.check(strings.Contains(admitted, "slow-orders created"), "the first of the two is admitted"); err != nil {
		return err
	}
	// The webhook knows of it as soon as the controller does: they read the same cache.
	if _, err := d.show("kubectl wait qw/slow-orders --for=condition=Ready --timeout=120s"); err != nil {
		return err
	}
	refusal, err := d.showRefused(shared)
	if err != nil {
		return err
	}
	if err := d.check(strings.Contains(refusal, "shared-queue-shorter-reservation: retryAfterSeconds 60 must be above jobSeconds 180 of QueueWorker slow-orders"),
		"the second is refused, and the other worker is named"); err != nil {
		return err
	}
	d.say("A risk that is not certain to hurt is admitted with a warning:")
	warned, err := d.show("kubectl apply -f config/samples/warned/http-timeout-missing.yaml")
	if err != nil {
		return err
	}
	return d.check(strings.Contains(warned, "Warning: spec.timeouts.httpSeconds: http-timeout-missing: ") && strings.Contains(warned, "created"),
		"it is created, with the warning")
}

func (d *demo) operatorDown() error {
	d.title("Stop the operator: broken chains are still refused, good ones still admitted")
	if _, err := d.show("kubectl wait qw --all --for=condition=Ready --timeout=120s"); err != nil {
		return err
	}
	d.say("Stopping the operator (SIGTERM).")
	if err := d.stopOperator(); err != nil {
		return err
	}
	refusal, err := d.showRefused(broken)
	if err != nil {
		return err
	}
	if err := d.checkRefusal(refusal, "the CRD's own rules refuse it, with the same text"); err != nil {
		return err
	}
	admitted, err := d.show("kubectl apply -f config/samples/horizon.yaml")
	if err != nil {
		return err
	}
	if err := d.check(strings.Contains(admitted, "horizon created"), "a good one goes through"); err != nil {
		return err
	}
	d.say("What needs a look at other objects is not refused now:")
	admitted, err = d.show(shared)
	if err != nil {
		return err
	}
	if err := d.check(strings.Contains(admitted, "shared-queue-shorter-reservation created"), "the second worker of the shared queue is admitted"); err != nil {
		return err
	}
	_, err = d.show("kubectl get qw")
	return err
}

func (d *demo) operatorBack() error {
	d.title("Start the operator again: it catches up and restarts nobody")
	before, err := d.podsOf("payments")
	if err != nil {
		return err
	}
	if err := d.launch(); err != nil {
		return err
	}
	if _, err := d.show("kubectl wait qw --all --for=condition=Ready --timeout=120s"); err != nil {
		return err
	}
	if _, err := d.show("kubectl get qw"); err != nil {
		return err
	}
	after, err := d.podsOf("payments")
	if err != nil {
		return err
	}
	if err := d.check(before != "" && before == after, "the workers of payments are the same pods as before"); err != nil {
		return err
	}
	told, err := d.show(`kubectl get qw shared-queue-shorter-reservation -o jsonpath='{.status.conditions[?(@.type=="ChainIntact")].message}{"\n"}'`)
	if err != nil {
		return err
	}
	return d.check(strings.Contains(told, "retryAfterSeconds 60 must be above jobSeconds 180 of QueueWorker slow-orders"),
		"the controller tells what the webhook could not")
}

func (d *demo) podsOf(name string) (string, error) {
	return d.quiet("kubectl get pods -l queueworker.dev/name=" + name + " -o name | sort")
}

// rollOut follows a change of the image until the last old worker is gone.
func (d *demo) rollOut() error {
	d.title("Roll out a new image: old workers finish their job first")
	if _, err := d.show("sed s/shop:1.4.2/shop:1.4.3/ config/samples/payments.yaml | kubectl apply -f -"); err != nil {
		return err
	}
	if err := d.follow(); err != nil {
		return err
	}
	if _, err := d.show("kubectl wait qw/payments --for=condition=Reconciling=false --timeout=120s"); err != nil {
		return err
	}
	images, err := d.show(`kubectl get pods -l queueworker.dev/name=payments -o custom-columns=NAME:.metadata.name,IMAGE:.spec.containers[0].image,GRACE:.spec.terminationGracePeriodSeconds`)
	if err != nil {
		return err
	}
	if err := d.check(strings.Count(images, "shop:1.4.3") == 3 && !strings.Contains(images, "shop:1.4.2"), "three workers run the new image, and no other is left"); err != nil {
		return err
	}
	_, err = d.show("kubectl get qw payments -o wide")
	return err
}

// follow shows the worker each time that the state of its rollout changes.
func (d *demo) follow() error {
	const look = `kubectl get qw payments -o jsonpath='{.metadata.generation}={.status.observedGeneration} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Reconciling")].reason}'`
	const table = `kubectl get qw payments -o custom-columns='NAME:.metadata.name,READY:.status.ready,UPDATED:.status.updatedReplicas,DRAINING:.status.terminatingReplicas,RECONCILING:.status.conditions[?(@.type=="Reconciling")].reason'`
	var seen []string
	wasReady := true
	err := d.until("the rollout of payments ends", 4*time.Minute, func() (bool, error) {
		state, err := d.quiet(look)
		var generation, status, reason string
		if err == nil {
			_, err = fmt.Sscan(state, &generation, &status, &reason)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w: %s", look, err, state)
		}
		wasReady = wasReady && status == "True"
		spec, observed, _ := strings.Cut(generation, "=")
		if spec != observed {
			return false, nil
		}
		if len(seen) == 0 || seen[len(seen)-1] != reason {
			seen = append(seen, reason)
			if _, err := d.show(table); err != nil {
				return false, err
			}
		}
		return reason == "Settled", nil
	})
	if err != nil {
		return err
	}
	states := strings.Join(seen, ", ")
	if err := d.check(strings.Contains(states, "DrainingOldPods, Settled"), "the rollout was not over before the old workers were gone: "+states); err != nil {
		return err
	}
	return d.check(wasReady, "it was Ready all the time")
}

func (d *demo) deleteAll() error {
	d.title("Delete everything: the workers go after they have finished")
	if _, err := d.show("kubectl delete qw --all --cascade=foreground"); err != nil {
		return err
	}
	left, err := d.show("kubectl get qw,deployments,pods")
	if err != nil {
		return err
	}
	return d.check(strings.TrimSpace(left) == "No resources found in default namespace.", "nothing is left")
}

// hasWords says whether a line of a table begins with these words.
func hasWords(table, words string) bool {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(strings.Join(strings.Fields(line), " ")+" ", words+" ") {
			return true
		}
	}
	return false
}
