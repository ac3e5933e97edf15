// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func is(got, want string) error {
	if got != want {
		return fmt.Errorf("it is %q, not %q", got, want)
	}
	return nil
}

// Whatever fails around them, workers run on untouched, and what was asked for is done right afterwards.
func TestFaults(t *testing.T) {
	installed(t, chart)
	applied(t, "steady", 2)
	applied(t, "rolled", 2)
	before := picture(t, "steady")
	replicas := 2
	for name, fault := range map[string]func(*testing.T){
		"all managers killed in a rollout": func(t *testing.T) {
			older := picture(t, "rolled")
			rolled(t, "rolled", "2")
			mustKubectl(t, "-n", system, "delete", "pods", "-l", component, "--grace-period=0", "--force")
			settled(t, "rolled", replicas)
			everyPodIsNew(t, older, picture(t, "rolled"))
		},
		"the leader lost": func(t *testing.T) {
			lost := leader(t)
			pod, _, _ := strings.Cut(lost, "_")
			id := mustKubectl(t, "-n", system, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].containerID}")
			if err := suite.node.Kill(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another leader", func() error {
				if now := leader(t); now == lost || now == "" {
					return fmt.Errorf("%s leads", now)
				}
				return nil
			})
		},
		"the API server restarted": func(t *testing.T) {
			if err := suite.node.RestartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"etcd down for 20 seconds": func(t *testing.T) {
			if err := suite.node.KillEtcd(t.Context()); err != nil {
				t.Fatal(err)
			}
			if out, err := kubectl(t.Context(), "", "get", "qw", "-A", "--request-timeout=5s"); err == nil {
				t.Errorf("the API server answers without etcd: %s", out)
			}
			time.Sleep(20 * time.Second)
			if err := suite.node.StartEtcd(t.Context()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the API server answers", func() error {
				_, err := kubectl(t.Context(), "", "get", "qw", "-A", "--request-timeout=5s")
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			fault(t)
			replicas = 5 - replicas // 2 or 3
			scaled(t, "rolled", replicas)
			works(t)
			untouched(t, "steady", before)
			if restarts := mustKubectl(t, "-n", workers, "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}"); strings.Trim(restarts, "0 ") != "" {
				t.Errorf("workers were restarted: %s", restarts)
			}
		})
	}
}

// everyPodIsNew says that a rollout went through once: no older pod is left, and there is one more ReplicaSet.
func everyPodIsNew(t *testing.T, before, after string) {
	t.Helper()
	if err := errors.Join(
		is(fmt.Sprint(strings.Count(after, "set ")), fmt.Sprint(strings.Count(before, "set ")+1)),
		is(fmt.Sprint(strings.Count(after, "pod ")), fmt.Sprint(strings.Count(before, "pod "))),
	); err != nil {
		t.Errorf("%v: before\n%s\nafter\n%s", err, before, after)
	}
	for line := range strings.Lines(before) {
		if uid := strings.Fields(line)[1]; strings.HasPrefix(line, "pod ") && strings.Contains(after, uid) {
			t.Errorf("pod %s is left of before the rollout", uid)
		}
	}
}
