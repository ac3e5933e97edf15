// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/entry"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/agent/workerstate"
)

// changing lets the entry's own code change its state as fast as it can.
const changing = `
require getenv('WORKER_PHP');
$worker = (new ReflectionClass('QueueWorker\\Agent\\Worker'))->newInstanceWithoutConstructor();
$change = function () {
    $this->__construct(getenv('QUEUEWORKER_DIR'));
    for ($i = 0; ; $i++) {
        $this->enter('loop');
        $this->enter('job', ['job' => ['uuid' => str_repeat('u', $i % 190), 'class' => str_repeat('c', 200), 'queue' => 'q', 'attempt' => $i]]);
        $this->enter('ended');
    }
};
$change->call($worker);
`

// A state is read whole or not at all, however often it changes meanwhile.
func TestStateIsReadWhole(t *testing.T) {
	dir := workdir.Dir(openDir(t))
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := entry.Install(dir, entry.Files()); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("php8.2", "-r", changing)
	cmd.Env = append(os.Environ(), "QUEUEWORKER_DIR="+dir.Run(), "WORKER_PHP="+dir.PHP()+"/worker.php")
	var complaint strings.Builder
	cmd.Stdout, cmd.Stderr = &complaint, &complaint
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "a state", func() bool {
		states, _ := workerstate.ReadAll(dir.Run())
		return len(states) > 0
	})
	seen := map[workerstate.Phase]int{}
	for end := time.Now().Add(time.Duration(times(3, 30)) * time.Second); time.Now().Before(end); {
		states, err := workerstate.ReadAll(dir.Run())
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range states {
			seen[state.Phase]++
			if (state.Job != nil) != (state.Phase == workerstate.Job) {
				t.Fatalf("a mixed state: %+v", state)
			}
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	t.Logf("read %v", seen)
	if seen[workerstate.Unknown] > 0 || seen[workerstate.Job] == 0 || seen[workerstate.Loop] == 0 || complaint.Len() > 0 {
		t.Errorf("read %v; %s", seen, complaint.String())
	}
}
