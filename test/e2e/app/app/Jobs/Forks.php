<?php

namespace App\Jobs;

/** Leaves a process of its own session behind. */
class Forks extends Job
{
    public $seconds = 60;

    public $pidFile = '';

    public $thenDie = 0;

    protected function run(): void
    {
        $pid = pcntl_fork();
        if ($pid === 0) {
            posix_setsid();
            pcntl_exec("/bin/sleep", [(string) $this->seconds]);
            exit(1);
        }
        file_put_contents($this->pidFile, $pid);
        if ($this->thenDie) {
            posix_kill(getmypid(), $this->thenDie);
        }
    }
}
