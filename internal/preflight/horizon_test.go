// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Horizon takes the first key that fits. The text names it, and which one it hides.
func TestHorizonsKeyIsNamed(t *testing.T) {
	supervisor := preflight.Supervisor{Name: "one", Connection: "redis", Queues: []string{"other"}, Timeout: 30, Tries: 3, MaxProcesses: 1}
	for name, c := range map[string]struct {
		horizon   preflight.Horizon
		rule, fix string
		says      string
	}{
		"none fits": {preflight.Horizon{Environment: "production", Environments: []string{"local"}}, "horizon-environment-missing",
			"add the environment to config/horizon.php, or set APP_ENV to one that is there", `the environment is "production", but environments in config/horizon.php has local`},
		"without supervisors": {preflight.Horizon{Environment: "production", Chosen: "production", Environments: []string{"production"}}, "horizon-environment-missing",
			"give environments.production a supervisor with processes", "environments.production in config/horizon.php has no supervisor"},
		"without processes": {preflight.Horizon{Environment: "production", Chosen: "production", Environments: []string{"production"}, Supervisors: []preflight.Supervisor{{Name: "one", Connection: "redis"}}}, "horizon-environment-missing",
			"give environments.production a supervisor with processes", "has no supervisor with a maxProcesses above 0"},
		"a pattern first": {preflight.Horizon{Environment: "production", Chosen: "*", Environments: []string{"*", "production"}, Supervisors: []preflight.Supervisor{supervisor}}, "horizon-queue-unserved",
			`add "default" to a supervisor's queue, or remove it from queue.names, or move "*" behind the keys that it hides`, `environments.* in config/horizon.php, the first key that fits "production", have other`},
	} {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			app := facts.Light.App
			app.Queue.Driver, app.Queue.Connection, app.Horizon = "redis", "redis", &c.horizon
			chain, d := wire(), declared()
			chain.Runtime, chain.Driver, d.Connection, d.Queues = timeoutchain.Horizon, timeoutchain.Redis, "redis", []string{"default"}
			v := preflight.Judge(chain, d, 0, facts)
			if len(v.Findings) != 1 || v.Findings[0].Rule != c.rule || v.Findings[0].Fix != c.fix || !strings.Contains(v.Findings[0].Problem, c.says) {
				t.Errorf("wanted %s with %q and %q, got %+v", c.rule, c.says, c.fix, v.Findings)
			}
		})
	}
}

// What the memory of several supervisors comes to is no field of the QueueWorker.
func TestFixOfHorizonsMemory(t *testing.T) {
	facts := sound()
	app := facts.Light.App
	app.Queue.Driver, app.Queue.Connection = "redis", "redis"
	app.Horizon = &preflight.Horizon{Environment: "production", Chosen: "production", Supervisors: []preflight.Supervisor{
		{Name: "one", Connection: "redis", Queues: []string{"default"}, Timeout: 30, Tries: 3, Memory: 128, MinProcesses: 1, MaxProcesses: 2, Balance: "off"},
	}}
	chain, d := wire(), declared()
	chain.Runtime, chain.Driver, d.Connection = timeoutchain.Horizon, timeoutchain.Redis, "redis"
	v := preflight.Judge(chain, d, 256<<20, facts)
	if len(v.Findings) != 1 || v.Findings[0].Fix != "raise the memory limit above 256 Mi, or lower memory or maxProcesses of the supervisors" ||
		strings.Contains(v.Findings[0].Problem, "memoryMegabytes") {
		t.Errorf("got %+v", v.Findings)
	}
}
