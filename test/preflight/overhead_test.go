// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// What the preflight may take, by the application's own boot.
const (
	mostBoots     = 2.5
	mostBeyond    = 100 * time.Millisecond
	manyClasses   = 200
	overheadRuns  = 21
	overheadWarms = 3
)

// TestOverhead measures the init container's command against the application's
// own boot, alternating in one run.
func TestOverhead(t *testing.T) {
	if os.Getenv("QW_PREFLIGHT_BENCH") == "" {
		t.Skip("a measurement: make bench-preflight")
	}
	a := newApp(t)
	for i := range manyClasses {
		a.job(sprintf("Generated%d", i), "    public $timeout = 25;\n    public $tries = 3;\n    public function handle() { }")
	}
	a.command("list")
	if found := len(a.facts().Light.Classes); found < manyClasses {
		t.Fatalf("only %d classes are listed", found)
	}
	var boots, preflights []time.Duration
	for i := range overheadRuns + overheadWarms {
		boot := a.timeBoot()
		begin := time.Now()
		a.agent(nil).want(t, 0, "preflight Passed: 0 errors, 0 warnings")
		if took := time.Since(begin); i >= overheadWarms {
			boots, preflights = append(boots, boot), append(preflights, took)
		}
	}
	boot, took := median(boots), median(preflights)
	most := time.Duration(mostBoots*float64(boot)) + mostBeyond
	t.Logf("boot %s, preflight with %d classes %s, allowed %s (%.1f boots + %s)", boot.Round(time.Millisecond), manyClasses, took.Round(time.Millisecond), most.Round(time.Millisecond), mostBoots, mostBeyond)
	if took > most {
		t.Errorf("the preflight takes %s, at most %s are allowed", took, most)
	}
}

// timeBoot starts the application as a worker does, up to its first look at the
// queue.
func (a *app) timeBoot() time.Duration {
	a.t.Helper()
	a.write("boot.php", `<?php
require __DIR__.'/vendor/autoload.php';
$app = require __DIR__.'/bootstrap/app.php';
$app->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
$app['queue']->connection()->size();
`)
	cmd := exec.Command("php8.2", "boot.php")
	cmd.Dir, cmd.Env = a.dir, append(a.env, "QUEUE_CONNECTION=redis")
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		a.t.Fatalf("%v\n%s", err, out)
	}
	return time.Since(begin)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
