<?php

namespace App\Jobs;

/** Waits in PHP's sleep(), which any signal with a handler cuts short. */
class Sleeps extends Job
{
    public $seconds = 1;

    protected function run(): void
    {
        sleep($this->seconds);
    }
}
