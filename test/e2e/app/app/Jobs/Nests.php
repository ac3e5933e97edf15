<?php

namespace App\Jobs;

/** Runs another job in place, then waits in sleep(). */
class Nests extends Job
{
    public $seconds = 1;

    protected function run(): void
    {
        dispatch((new Short)->onConnection("sync"));
        sleep($this->seconds);
    }
}
