<?php

namespace App\Jobs;

/** Works through many short steps: no signal can shorten it. */
class Long extends Job
{
    public $seconds = 1;

    protected function run(): void
    {
        for ($end = microtime(true) + $this->seconds; microtime(true) < $end;) {
            usleep(20000);
        }
    }
}
